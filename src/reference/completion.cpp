#include "core/text.h"
#include "pages.h"

#include <algorithm>

#include <fmt/format.h>

namespace containerize::reference {

namespace {

constexpr std::string_view names_of_offers[] = {"nothing", "files", "directories", "commands",
                                                "installations"};

std::string_view name_of(cli::Offer offer) {
    return names_of_offers[static_cast<std::size_t>(offer)];
}

/// What completions show: the first sentence, without what is in parentheses.
std::string short_text(std::string text) {
    std::erase(text, '`');
    return text.substr(0, std::min({text.find(". "), text.find(" ("), text.find_last_not_of('.') + 1}));
}

bool is_positional(const cli::OptionText& option) {
    return !option.names.front().starts_with('-');
}

/// The position of a positional; "*" for a program, which may have any number of words.
std::string position(const cli::OptionText& option, int& count) {
    return option.offer == cli::Offer::commands || option.names.front() == "COMMAND"
               ? "*"
               : std::to_string(++count);
}

std::vector<cli::OptionText> options_of(const CLI::App& command) {
    std::vector<cli::OptionText> options;
    for (const auto& group : groups_of(command))
        options.insert(options.end(), group.options.begin(), group.options.end());
    return options;
}

/// Always quoted, by the rules of sh.
std::string quoted(std::string text) {
    replace_all(text, "'", "'\\''");
    return "'" + text + "'";
}

} // namespace

// NAME for flags and commands, NAME=VALUES for what takes a value. VALUES are separated by "|".
std::string table_for_bash(const std::vector<Command>& commands) {
    std::string text;
    for (const auto& command : commands) {
        std::string words;
        for (const auto* sub : command.app->get_subcommands({}))
            words += " " + sub->get_name();
        int count = 0;
        for (auto option : options_of(*command.app)) {
            option.choices.push_back("@" + std::string(name_of(option.offer)));
            const auto values = fmt::format("={}", fmt::join(option.choices, "|"));
            if (is_positional(option))
                words += " " + quoted(position(option, count) + values);
            else
                for (const auto& name : option.names)
                    words += " " + quoted(name + (option.value.empty() ? "" : values));
        }
        text += fmt::format("    {}) __containerize_words=({}) ;;\n", quoted(command.name), words.substr(1));
    }
    return text;
}

// What _arguments and _describe of zsh take.
std::string table_for_zsh(const std::vector<Command>& commands) {
    std::string text;
    for (const auto& command : commands) {
        text += fmt::format("    {})\n", quoted(command.name));
        for (const auto* sub : command.app->get_subcommands({}))
            text += fmt::format(
                "        commands+=({})\n",
                quoted(sub->get_name() + ":" + escaped(short_text(sub->get_description()), ":\\")));
        int count = 0;
        for (const auto& option : options_of(*command.app)) {
            const auto about = escaped(short_text(option.description), "[]:\\");
            const auto value =
                fmt::format(":{}: __containerize_value {} {}",
                            escaped(is_positional(option) ? option.names.front() : option.value, ":\\"),
                            quoted(fmt::format("{}", fmt::join(option.choices, " "))), name_of(option.offer));
            if (is_positional(option)) {
                text += fmt::format("        arguments+=({})\n", quoted(position(option, count) + value));
                continue;
            }
            for (const auto& name : option.names)
                text += fmt::format("        arguments+=({})\n",
                                    quoted((option.is_repeatable ? "*" : "") + name +
                                           (option.value.empty()     ? "[" + about + "]"
                                            : name.starts_with("--") ? "=[" + about + "]" + value
                                                                     : "+[" + about + "]" + value)));
        }
        text += "        ;;\n";
    }
    return text;
}

std::string table_for_fish(const std::vector<Command>& commands) {
    const auto fish_quoted = [](std::string_view text) { return "'" + escaped(text, "'\\") + "'"; };
    std::string text;
    for (const auto& command : commands) {
        const auto& program = commands.front().name;
        const auto start =
            fmt::format("complete -c {} -n {}", program, fish_quoted("__containerize_is_at " + command.name));
        text += &command == &commands.front()
                    ? fmt::format("complete -c {} -f\n", program)
                    : fmt::format("set -ga __containerize_commands {}\n", fish_quoted(command.name));
        for (const auto* sub : command.app->get_subcommands({}))
            text += fmt::format("{} -a {} -d {}\n", start, sub->get_name(),
                                fish_quoted(short_text(sub->get_description())));
        for (const auto& option : options_of(*command.app)) {
            auto line = start;
            for (const auto& name : option.names)
                if (!is_positional(option))
                    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
            if (option.offer == cli::Offer::files)
                line += " -r -F";
            else if (!option.value.empty())
                line += " -x";
            auto values = fmt::format("{}", fmt::join(option.choices, " "));
            if (option.offer == cli::Offer::directories) values += " (__fish_complete_directories)";
            if (option.offer == cli::Offer::commands) values += " (__fish_complete_command)";
            if (!values.empty()) line += " -a " + fish_quoted(values);
            if (!is_positional(option)) line += " -d " + fish_quoted(short_text(option.description));
            if (line != start) text += line + "\n";
        }
    }
    return text;
}

} // namespace containerize::reference

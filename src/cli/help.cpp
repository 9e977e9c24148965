#include "cli/help.h"

#include "cli/tree.h"
#include "core/text.h"

#include <algorithm>

#include <fmt/format.h>

namespace containerize::cli {

namespace {

constexpr std::size_t left_width = 30, full_width = 100;
constexpr std::string_view others = "..."; ///< among choices: there are more

/// What CLI11 appends to the name of a value: "VENDOR:{auto,none}", "N:INT in [1 - 1024]".
struct TypeName {
    std::string value, choices, range;

    explicit TypeName(std::string text) {
        const auto cut = [&text](std::string_view begin, std::string_view end, std::string& into) {
            const auto at = text.find(begin);
            if (at == text.npos) return;
            const auto start = at + begin.size();
            into = text.substr(start, text.find(end, start) - start);
            text.resize(at);
        };
        cut(":{", "}", choices);
        cut(":INT in [", "]", range);
        cut(":UINT in [", "]", range);
        value = std::move(text);
    }
};

/// What lies in such a value.
Offer offer_for(std::string_view value) {
    const auto has = [value](std::string_view word) { return value.find(word) != value.npos; };
    if (has("COMMAND")) return Offer::commands;
    if (has("INSTALLATION")) return Offer::installations;
    if (has("DIR")) return Offer::directories;
    return has("FILE") || has("PATH") || has("SRC") ? Offer::files : Offer::nothing;
}

std::vector<std::string> names_of(const std::set<CLI::Option*>& options) {
    std::vector<std::string> names;
    for (const auto* option : options)
        names.push_back(option->get_name());
    std::ranges::sort(names);
    return names;
}

std::string heading(const OptionText& text) {
    return fmt::format("  {}{}{}{}", fmt::join(text.names, ", "), text.value.empty() ? "" : " ", text.value,
                       text.is_repeatable ? " ..." : "");
}

/// Two columns, the right one wrapped.
std::string row(std::string left, std::string_view text) {
    auto lines = std::move(left);
    auto width = lines.size();
    const auto new_line = [&] {
        lines += "\n" + std::string(left_width, ' ');
        width = left_width;
    };
    if (width + 2 > left_width)
        new_line();
    else
        lines.resize(width = left_width, ' ');
    while (!text.empty()) {
        const auto word = text.substr(0, text.find(' '));
        if (width > left_width && width + 1 + word.size() > full_width) new_line();
        if (width > left_width) lines += ' ';
        lines += word;
        width += 1 + word.size();
        text.remove_prefix(std::min(text.size(), word.size() + 1));
    }
    return lines + "\n";
}

} // namespace

CLI::Option* by_configuration(CLI::Option* option, config::Key key) {
    const auto& about = config::info(key);
    if (!about.choices.empty()) option->check(offer(about.choices));
    return option->description(std::string(about.description))
        ->default_str(std::string(about.standard.empty() ? about.otherwise : about.standard))
        ->configurable();
}

CLI::Validator offer(std::string_view choices) {
    return CLI::Validator(fmt::format("{{{}}}", choices));
}

OptionText describe(const CLI::Option& option) {
    const TypeName type(option.get_type_name());
    OptionText text;
    const bool is_positional = option.get_positional();
    for (const auto& name : option.get_snames())
        text.names.push_back("-" + name);
    for (const auto& name : option.get_lnames())
        text.names.push_back("--" + name);
    if (is_positional) text.names = {option.get_name(true)};
    if (!is_positional && option.get_type_size() != 0) text.value = type.value;
    text.offer = offer_for(type.value);
    if (is_positional && text.offer == Offer::nothing) text.offer = offer_for(text.names.front());
    text.is_repeatable = option.get_expected_max() == CLI::detail::expected_max_vector_size;
    text.choices = type.choices.empty() ? std::vector<std::string>() : CLI::detail::split(type.choices, ',');
    std::vector<std::string> remarks;
    if (std::erase(text.choices, others) == 0 && !text.choices.empty())
        remarks.push_back(listed(text.choices));
    if (const auto minus = type.range.find(" - "); minus != std::string::npos)
        remarks.push_back(type.range.substr(0, minus) + " to " + type.range.substr(minus + 3));
    if (!option.get_default_str().empty()) remarks.push_back("default: " + option.get_default_str());
    if (!option.get_envname().empty()) remarks.push_back("or the variable " + option.get_envname());
    if (!option.get_needs().empty()) remarks.push_back("only with " + listed(names_of(option.get_needs())));
    if (!option.get_excludes().empty())
        remarks.push_back("not with " + listed(names_of(option.get_excludes())));
    text.description = option.get_description();
    if (!remarks.empty()) text.description += fmt::format(" ({})", fmt::join(remarks, "; "));
    text.description += '.';
    if (option.get_configurable())
        for (const auto& key : config::all_keys())
            if (!key.option.empty() && option.check_lname(std::string(key.option.substr(2))))
                text.key = key.name;
    return text;
}

Help::Help() {
    label("SUBCOMMAND", "COMMAND");
    label("Positionals", "Arguments");
    column_width(left_width);
}

std::string Help::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
    const auto text = Formatter::make_help(app, std::move(name), mode);
    return CLI::detail::find_and_replace(CLI::detail::find_and_replace(text, "\n\n\n", "\n\n"),
                                         "\nSubcommands:\n", "\nCommands:\n");
}

std::string Help::make_option(const CLI::Option* option, bool) const {
    const auto text = describe(*option);
    return row(heading(text), text.description);
}

std::string Help::make_option_usage(const CLI::Option* option) const {
    if (option->get_name(true) != "COMMAND") return Formatter::make_option_usage(option);
    const bool is_needed = option->get_default_str().empty();
    return is_needed ? "-- COMMAND ..." : "[-- COMMAND ...]";
}

std::string Help::make_subcommand(const CLI::App* command) const {
    return row("  " + command->get_name(), command->get_description());
}

} // namespace containerize::cli

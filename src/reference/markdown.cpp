#include "config/key.h"
#include "core/exit_code.h"
#include "core/text.h"
#include "core/variables.h"
#include "pages.h"

#include <fmt/format.h>

namespace containerize::reference {

namespace {

std::string cell(std::string text) {
    replace_all(text, "|", "\\|");
    return text;
}

/// Code in a table's cell, in which Markdown does not show a pipe between backticks.
std::string code(std::string text) {
    if (text.find('|') == text.npos) return "`" + text + "`";
    replace_all(text, "|", "&#124;");
    return "<code>" + text + "</code>";
}

std::string names(const cli::OptionText& option) {
    std::string text;
    for (const auto& name : option.names)
        text +=
            (text.empty() ? "" : ", ") +
            code(name + (&name == &option.names.back() && !option.value.empty() ? " " + option.value : ""));
    return text + (option.is_repeatable ? " ..." : "");
}

std::string markdown_options(const CLI::App& command) {
    std::string text;
    for (const auto& group : groups_of(command)) {
        if (!group.title.empty() && group.title != "Options") text += "\n" + group.title + ":\n";
        text += fmt::format("\n| {} | |\n|---|---|\n", group.title.empty() ? "argument" : "option");
        for (const auto& option : group.options)
            text += fmt::format("| {} | {}{} |\n", cell(names(option)), cell(option.description),
                                option.key.empty()
                                    ? ""
                                    : fmt::format(" See [`{0}`](configuration-keys.md#{0}).", option.key));
    }
    return text;
}

std::string markdown_footer(const CLI::App& command) {
    std::string text;
    for (const auto& [is_example, lines] : blocks_of(command.get_footer()))
        text += is_example ? fmt::format("\n```\n{}```\n", lines) : fmt::format("\n{}\n", lines);
    return text;
}

std::string list_of_commands(const Command& command) {
    std::string text;
    std::string group;
    for (const auto* sub : command.app->get_subcommands({})) {
        if (sub->get_group() != group) {
            group = sub->get_group();
            text += fmt::format("\n| {} | |\n|---|---|\n", group == "Subcommands" ? "command" : group);
        }
        auto anchor = command.name + "-" + sub->get_name();
        replace_all(anchor, " ", "-");
        text += fmt::format("| [`{}`](#{}) | {} |\n", sub->get_name(), anchor, cell(sub->get_description()));
    }
    return text;
}

std::string commands_page(const std::vector<Command>& commands) {
    std::string text =
        "# Commands\n\nThis page has all commands and options. `--help` after a command prints its part.\n";
    for (const auto& command : commands)
        text += fmt::format("\n## {0}\n\n{1}.\n\n```\n{0} {2}\n```\n{3}{4}{5}", command.name,
                            command.app->get_description(), synopsis_of(command), list_of_commands(command),
                            markdown_options(*command.app), markdown_footer(*command.app));
    return text;
}

std::string environment_page() {
    std::string text =
        "# Environment variables\n\ncontainerize reads these variables, or sets them for other programs.\n";
    for (const auto& [names, description] : variable_table)
        if (description.empty())
            text += fmt::format("\n## {}\n\n| variable | |\n|---|---|\n", names);
        else
            text +=
                fmt::format("| `{}` | {} |\n", fmt::join(CLI::detail::split(std::string(names), ' '), "`, `"),
                            cell(std::string(description)));
    return text;
}

std::string value_of_kind(const config::KeyInfo& key) {
    switch (key.kind) {
    case config::Kind::directory:
        return "a directory; variables are expanded";
    case config::Kind::flag:
        return "`true` or `false`";
    case config::Kind::number:
        return "a number from 1 to 1024";
    case config::Kind::list:
        return "a list";
    case config::Kind::map:
        return "a map";
    case config::Kind::text:
        break;
    }
    if (key.choices.empty() || key.choices.ends_with("...")) return {};
    std::vector<std::string> choices;
    for (const auto& choice : CLI::detail::split(std::string(key.choices), ','))
        choices.push_back(code(choice));
    return listed(choices);
}

std::string configuration_keys_page() {
    std::string text = "# Configuration keys\n\n[Configuration](configuration.md) explains the files and "
                       "sections that contain these keys.\n";
    for (const auto& key : config::all_keys()) {
        text += fmt::format("\n## {}\n\n{}.\n\n", key.name, key.description);
        if (const auto value = value_of_kind(key); !value.empty()) text += "- Value: " + value + "\n";
        text += "- Default: " +
                (key.standard.empty() ? std::string(key.otherwise) : code(std::string(key.standard))) + "\n";
        if (!key.option.empty()) text += fmt::format("- For one build: `{}`\n", key.option);
        if (key.variable.name() != nullptr) text += fmt::format("- Variable: `{}`\n", key.variable.name());
    }
    return text;
}

std::string exit_codes_page() {
    std::string text = "# Exit codes\n\nThe exit code of containerize shows what kind of error "
                       "happened.\n\n| code | meaning |\n|---|---|\n";
    for (const auto& [code, meaning] : exit_codes)
        text += fmt::format("| {} | {} |\n", code, cell(std::string(meaning)));
    return text;
}

} // namespace

std::vector<Page> markdown_pages(const std::vector<Command>& commands) {
    return {{"commands.md", commands_page(commands)},
            {"environment.md", environment_page()},
            {"configuration-keys.md", configuration_keys_page()},
            {"exit-codes.md", exit_codes_page()}};
}

} // namespace containerize::reference

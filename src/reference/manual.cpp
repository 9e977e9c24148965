#include "config/configuration.h"
#include "config/key.h"
#include "core/exit_code.h"
#include "core/text.h"
#include "core/variables.h"
#include "core/version.h"
#include "pages.h"

#include <fmt/format.h>

namespace containerize::reference {

namespace {

/// Escapes a text for roff, and makes `code` bold.
std::string roff(std::string_view text) {
    std::string escaped = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
    bool is_code = false;
    for (const char c : text) {
        if (c == '`') {
            is_code = !is_code;
            escaped += is_code ? "\\fB" : "\\fR";
        } else if (c == '\\')
            escaped += "\\e";
        else if (c == '-')
            escaped += "\\-";
        else
            escaped += c;
    }
    return escaped;
}

std::string roff_lines(std::string_view text) {
    std::string escaped;
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        escaped += roff(text.substr(0, end)) + "\n";
        text.remove_prefix(std::min(text.size(), end + 1));
    }
    return escaped;
}

std::string entry(const std::string& term, std::string_view text) {
    return fmt::format(".TP\n{}\n{}\n", term, roff(text));
}

std::string bold(std::string_view text) {
    return "\\fB" + roff(text) + "\\fR";
}

std::string term(const cli::OptionText& option) {
    std::string text;
    for (const auto& name : option.names)
        text += (text.empty() ? "" : ", ") + bold(name);
    if (!option.value.empty()) text += " \\fI" + roff(option.value) + "\\fR";
    return text + (option.is_repeatable ? " ..." : "");
}

std::string options(const CLI::App& command) {
    std::string text;
    for (const auto& group : groups_of(command)) {
        if (group.title.empty())
            text += ".SH ARGUMENTS\n";
        else if (group.title == "Options")
            text += ".SH OPTIONS\n";
        else
            text += ".SS " + roff(group.title) + "\n";
        for (const auto& option : group.options)
            text +=
                entry(term(option),
                      option.description +
                          (option.key.empty()
                               ? ""
                               : fmt::format(" `{}` in the configuration sets the default.", option.key)));
    }
    return text;
}

std::string footer(const CLI::App& command) {
    std::string text;
    for (const auto& [is_example, lines] : blocks_of(command.get_footer()))
        text += is_example ? fmt::format(".PP\n.nf\n.RS\n{}.RE\n.fi\n", roff_lines(lines))
                           : fmt::format(".PP\n{}\n", roff(lines));
    return text.empty() ? "" : ".SH NOTES\n" + text;
}

std::string list_of_commands(const CLI::App& program) {
    std::string text = ".SH COMMANDS\n";
    std::string group;
    for (const auto* command : program.get_subcommands({})) {
        if (command->get_group() != group && command->get_group() != "Subcommands")
            text += ".SS " + roff(group = command->get_group()) + "\n";
        text += entry(bold(command->get_name()), command->get_description());
    }
    return text;
}

std::string environment() {
    std::string text = ".SH ENVIRONMENT\n";
    for (const auto& [names, description] : variable_table)
        text += description.empty() ? ".SS " + roff(names) + "\n" : entry(bold(names), description);
    return text;
}

std::string exit_status() {
    std::string text = ".SH EXIT STATUS\n";
    for (const auto& [code, meaning] : exit_codes)
        text += entry(bold(std::to_string(code)), meaning);
    return text;
}

std::string keys() {
    std::string text = ".SH KEYS OF THE CONFIGURATION\n";
    for (const auto& key : config::all_keys())
        text += entry(bold(key.name), fmt::format("{} (default: {}).", key.description,
                                                  key.standard.empty() ? key.otherwise : key.standard));
    return text;
}

/// A page for `first` and the commands below it.
Page page(const Command& first, const std::vector<Command>& commands) {
    const auto& program = commands.front();
    auto name = first.name;
    replace_all(name, " ", "-");
    auto text =
        fmt::format(".TH {} 1 \"\" \"containerize {}\" \"containerize\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
                    roff(upper(name)), this_version, roff(name), roff(first.app->get_description()));
    const bool is_program = first.name == program.name && !program.app->get_footer().empty();
    for (const auto& command : commands)
        if (command.name == first.name || (!is_program && command.name.starts_with(first.name + " ")))
            text += fmt::format(".B {}\n{}\n.br\n", roff(command.name), roff(synopsis_of(command)));
    if (is_program) text += list_of_commands(*first.app);
    text += options(*first.app);
    if (!is_program)
        for (const auto& command : commands)
            if (command.name.starts_with(first.name + " "))
                text += fmt::format(".SH {}\n{}.\n", roff(upper(command.name)),
                                    roff(command.app->get_description())) +
                        options(*command.app);
    text += footer(*first.app);
    if (first.app->get_name() == "config") text += keys();
    if (is_program) text += environment() + exit_status();
    text += ".SH SEE ALSO\n";
    text += is_program ? ".BR containerize\\-COMMAND (1)\n" : ".BR containerize (1)\n";
    return {name + ".1", text};
}

} // namespace

std::vector<Page> manual_pages(const std::vector<Command>& commands) {
    std::vector<Page> pages;
    const auto& program = commands.front();
    const bool has_own_pages = program.name == cli::programs.front();
    for (const auto& command : commands)
        if (&command == &program || (has_own_pages && command.app->get_parent() == program.app))
            pages.push_back(page(command, commands));
    return pages;
}

} // namespace containerize::reference

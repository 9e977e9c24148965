#include "cli/parse.h"

#include "core/exit_code.h"
#include "util/similar_names.h"

#include <algorithm>
#include <utility>

namespace containerize::cli {

namespace {

const CLI::App& innermost_command(const CLI::App& tree) {
    const auto* command = &tree;
    for (auto chosen = tree.get_subcommands(); !chosen.empty(); chosen = command->get_subcommands())
        command = chosen.front();
    return *command; // NOLINT(bugprone-return-const-ref-from-parameter): of a tree that outlives the call
}

std::string full_name(const CLI::App& command) {
    const auto* parent = command.get_parent();
    return (parent == nullptr ? "" : full_name(*parent) + " ") + command.get_name();
}

/// Moves what follows "--" to `call.program`, because CLI11 would take the program's options for ours and
/// split
/// "[a,b]" into two. Returns the other arguments.
std::vector<std::string> separate_program(const CLI::App& tree, Call& call) {
    std::vector<std::string> words(call.words.begin() + 1, call.words.end());
    const auto commands = tree.get_subcommands([&](const CLI::App* command) {
        return !words.empty() && command->get_name() == words.front() && takes_program(*command);
    });
    if (commands.empty()) return words;
    const auto mark = std::ranges::find(words, "--");
    if (mark == words.end()) return words;
    call.program.assign(mark + 1, words.end());
    words.erase(mark, words.end());
    return words;
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
    std::vector<std::string> names;
    for (const auto* command : app.get_subcommands({}))
        names.push_back(command->get_name());
    return names;
}

std::vector<std::string> names_of_options(const CLI::App& command) {
    std::vector<std::string> names;
    for (const auto* option : command.get_options())
        for (const auto& name : option->get_lnames())
            names.push_back("--" + name);
    return names;
}

/// The first word that no command takes; empty if there is none.
std::string unknown_word(const CLI::App& tree) {
    if (innermost_command(tree).get_allow_extras()) return {};
    for (const auto& word : tree.remaining(true))
        if (word != "--") return word;
    return {};
}

std::string explain_unknown(const std::string& word, const CLI::App& command) {
    const bool is_option = word.starts_with('-');
    const auto names = is_option ? names_of_options(command) : names_of_commands(command);
    std::string text = (!is_option && !names.empty() ? "unknown command: " : "unknown argument: ") + word;
    const auto similar = similar_names(names, word.substr(0, word.find('=')));
    for (const auto& name : similar)
        text += (&name == &similar.front() ? "; did you mean " : " or ") + name;
    if (!similar.empty()) text += '?';
    if (!is_option && takes_program(command)) text += "; give a command to run after --";
    return text;
}

/// Rewords CLI11's "Could not convert: N = -1".
std::string reworded(const std::string& said) {
    constexpr std::string_view start = "Could not convert: ";
    const auto equals = said.find(" = ");
    if (!said.starts_with(start) || equals == std::string::npos) return said;
    return "invalid value for " + said.substr(start.size(), equals - start.size()) + ": '" +
           said.substr(equals + 3) + "'";
}

} // namespace

std::optional<Answer> parse(CLI::App& tree, Call& call) {
    auto words = separate_program(tree, call);
    if (words.empty()) return Answer{.text = tree.help()};
    std::ranges::reverse(words); // as CLI11 wants them
    try {
        tree.parse(std::move(words));
    } catch (const CLI::ParseError& problem) {
        const auto& command = innermost_command(tree);
        // An unknown word is named first: it often causes the other mistakes, and --help after it would be
        // help about something else.
        const auto unknown = unknown_word(tree);
        if (unknown.empty() && problem.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success))
            return Answer{.text = dynamic_cast<const CLI::CallForHelp*>(&problem) != nullptr
                                      ? tree.help()
                                      : std::string(problem.what()) + "\n"};
        return Answer{.code = exit_usage,
                      .text =
                          (unknown.empty() ? reworded(problem.what()) : explain_unknown(unknown, command)) +
                          " (see `" + full_name(command) + " --help`)",
                      .command = full_name(command)};
    }
    if (call.action) return std::nullopt;
    return Answer{.text = tree.help()};
}

} // namespace containerize::cli

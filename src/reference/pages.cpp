#include "pages.h"

#include <algorithm>
#include <sstream>

namespace containerize::reference {

std::vector<Command> with_subcommands(const CLI::App& app, const std::string& name) {
    std::vector<Command> commands = {{name, &app}};
    for (const auto* sub : app.get_subcommands({})) {
        const auto below = with_subcommands(*sub, name + " " + sub->get_name());
        commands.insert(commands.end(), below.begin(), below.end());
    }
    return commands;
}

std::vector<Group> groups_of(const CLI::App& command) {
    std::vector<Group> groups;
    for (const auto* option : command.get_options()) {
        if (option->get_group().empty()) continue; // hidden
        const auto title = option->get_positional() ? "" : option->get_group();
        auto group = std::ranges::find(groups, title, &Group::title);
        if (group == groups.end())
            group = groups.insert(title.empty() ? groups.begin() : groups.end(), Group{title, {}});
        group->options.push_back(cli::describe(*option));
    }
    return groups;
}

std::vector<Block> blocks_of(const std::string& footer) {
    std::vector<Block> blocks;
    bool begins = true;
    std::istringstream lines(footer);
    for (std::string line; std::getline(lines, line);) {
        const bool is_example = line.starts_with("  ");
        if (line.empty() || begins || blocks.back().is_example != is_example)
            blocks.push_back({.is_example = is_example, .text = {}});
        begins = line.empty();
        if (is_example)
            blocks.back().text += line.substr(2) + "\n";
        else
            blocks.back().text += (blocks.back().text.empty() ? "" : " ") + line;
    }
    std::erase_if(blocks, [](const Block& block) { return block.text.empty(); });
    return blocks;
}

std::string synopsis_of(const Command& command) {
    const auto usage = cli::Help().make_usage(command.app, "");
    return usage.substr(usage.find(' ') + 1, usage.find('\n') - usage.find(' ') - 1);
}

} // namespace containerize::reference

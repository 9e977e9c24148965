// Texts made from the trees of commands (src/cli/tree.h) and the tables in the code.
#pragma once

#include "cli/help.h"
#include "cli/tree.h"

#include <string>
#include <string_view>
#include <vector>

namespace containerize::reference {

/// A command of one of the trees, or the whole program.
struct Command {
    std::string name; ///< "containerize cache info"
    const CLI::App* app;
};
/// The command itself, then those below it.
std::vector<Command> with_subcommands(const CLI::App& app, const std::string& name);

/// The options of one group, as in --help; the positionals come first, without a title.
struct Group {
    std::string title;
    std::vector<cli::OptionText> options;
};
std::vector<Group> groups_of(const CLI::App& command);

/// A part of the text below the options in --help.
struct Block {
    bool is_example = false; ///< lines to be shown as they are
    std::string text;        ///< an example's lines end with newlines
};
std::vector<Block> blocks_of(const std::string& footer);

/// "[OPTIONS] DIR"
std::string synopsis_of(const Command& command);

struct Page {
    std::string file, text;
};
std::vector<Page> markdown_pages(const std::vector<Command>& commands);
std::vector<Page> manual_pages(const std::vector<Command>& commands);

/// Tables of commands, to be put into the completion scripts.
std::string table_for_bash(const std::vector<Command>& commands);
std::string table_for_zsh(const std::vector<Command>& commands);
std::string table_for_fish(const std::vector<Command>& commands);

} // namespace containerize::reference

// tykky's command names, options and messages, for existing scripts and users.
#pragma once

#include "cli/tree.h"

namespace containerize::cli {

/// Whether `name` is one of tykky's four commands, such as "conda-containerize".
bool is_name_of_tykky(std::string_view name);

/// Their trees.
std::unique_ptr<CLI::App> make_tykky_tree(std::string_view name, Call& call);

/// Sends all messages to standard output, with tykky's tags.
void write_as_tykky();
void show_mistake_as_tykky(const std::string& command, const std::string& text);
/// Returns the exit code.
int report_as_tykky(Error error, const CLI::App& tree);

} // namespace containerize::cli

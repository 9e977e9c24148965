// The build log: everything that happened, in a file that stays with the installation.
#pragma once

#include "util/error.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace containerize::log {

enum class Level { quiet, normal, verbose };

/// Starts the log: a file (appended to, flushed line by line) and what the terminal shows. Called once by the
/// CLI. Before that, `info` and `warn` go to stderr and `detail` nowhere.
Status open(const std::filesystem::path& file, Level level);
/// A copy of everything so far goes to `file`, and all that follows (`--log`).
Status also(const std::filesystem::path& file);
/// The file given to open(); empty before.
std::filesystem::path current();

/// From now on what the terminal shows begins with its kind: "[ INFO ] ", "[ WARNING ] ", "[ DEBUG ] ".
void use_tags();
/// As the terminal shows it, with a kind ("ERROR") in front if tags are used.
std::string tagged(std::string_view kind, std::string_view text);

/// To the file only; to the terminal too where the user asked for -v.
void detail(std::string_view line);
/// To the file and, unless -q, to stderr.
void info(std::string_view line);
/// To both, always, with "warning: " before it.
void warn(std::string_view line);

/// Columns that a line of progress may have; 0 if stderr is no terminal or -q was given.
unsigned progress_columns();
/// Shows this line of progress at the bottom of the terminal until the next one; empty removes it. Must fit
/// into progress_columns(). Never in the file.
void progress(std::string_view line);

} // namespace containerize::log

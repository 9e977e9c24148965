// The build log: everything that happened, in a file that stays with the installation.
#pragma once

#include "core/error.h"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace containerize::log {

enum class Level { quiet, normal, verbose };

/// Starts the log: a file (appended to, flushed line by line), and `level` for the terminal. Called once by
/// the CLI. Before that, `info` and `warn` go to stderr and `detail` nowhere.
Status open(const std::filesystem::path& file, Level level);
/// Also writes to `file` everything logged so far and from now on (`--log`). Replaces its content, unless
/// this process has written that for an earlier log.
Status also(const std::filesystem::path& file);
/// Adds what is logged from now on to a copy of the log, if it can be written. The copy may be moved
/// meanwhile.
void continue_in(const std::filesystem::path& file);
/// The file given to open(); empty before.
std::filesystem::path current();

/// From now on lines on the terminal begin with their kind: "[ INFO ] ", "[ WARNING ] ", "[ DEBUG ] ".
void use_tags();
/// `text` as the terminal shows it, with its kind ("ERROR") in front if tags are used.
std::string tagged(std::string_view kind, std::string_view text);

/// Logs to the file and, with -v, to stderr.
void detail(std::string_view line);
/// Logs to the file and, unless -q, to stderr.
void info(std::string_view line);
/// Logs to both, always, with "warning: " in front.
void warn(std::string_view line);

/// Logs the text that `draw` makes for a number of columns: for 80 to the file, and, unless -q, for those of
/// the terminal to stderr.
void table(const std::function<std::string(unsigned columns)>& draw);

/// Columns for a line of progress; 0 if stderr is no terminal or -q was given.
unsigned progress_columns();
/// Shows a line of progress at the bottom of the terminal until the next one; empty removes it. It must fit
/// into progress_columns(). Never written to the file.
void progress(std::string_view line);

} // namespace containerize::log

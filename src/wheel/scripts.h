// The first lines of Python scripts, and the scripts of entry points.
#pragma once

#include "wheel/dist_info.h"

#include <string>
#include <string_view>

namespace containerize::wheel {

/// The lines with which a Python script starts that `interpreter`, an absolute path, is to run. If the kernel
/// cannot read this path from a first line, sh reads it.
std::string script_start(std::string_view interpreter);
/// The same for a script in the interpreter's directory, whatever the path of that is.
std::string script_start_beside(std::string_view interpreter_name);

/// Whether the wheel leaves it to the installer to name the script's interpreter ("#!python").
bool wants_interpreter(std::string_view start_of_script);
/// The script, which wants_interpreter(), with this interpreter.
std::string with_interpreter(std::string_view script, std::string_view interpreter);

/// The script of a command.
std::string entry_point_script(const EntryPoint& command, std::string_view interpreter);

} // namespace containerize::wheel

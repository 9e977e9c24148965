#include "wheel/scripts.h"

#include "util/user_text.h"

#include <algorithm>

namespace containerize::wheel {

namespace {

/// Linux before 5.1 reads 127 bytes of a first line.
constexpr std::size_t longest_first_line = 127;

/// Lines that sh and Python read in different ways: to sh, they run a command; to Python, which reads the
/// file next, they are a string.
std::string started_by_sh(std::string_view interpreter) {
    return "#!/bin/sh\n'''exec' " + std::string(interpreter) + " \"$0\" \"$@\"\n' '''\n";
}

/// Whether sh and Python would change it in double quotes, or Python would not read it.
bool has_special_characters(std::string_view path) {
    return path.find_first_of("$`\"\\'\n\r") != path.npos || !is_utf8(path);
}

} // namespace

std::string script_start(std::string_view interpreter) {
    auto first_line = "#!" + std::string(interpreter) + "\n";
    if (first_line.size() <= longest_first_line && interpreter.find_first_of(" \t\r\n") == interpreter.npos &&
        is_utf8(interpreter))
        return first_line;
    if (has_special_characters(interpreter))
        return script_start_beside(interpreter.substr(interpreter.rfind('/') + 1));
    return started_by_sh("\"" + std::string(interpreter) + "\"");
}

std::string script_start_beside(std::string_view interpreter_name) {
    return started_by_sh("\"$(dirname -- \"$(realpath -- \"$0\")\")\"/" + std::string(interpreter_name));
}

bool wants_interpreter(std::string_view start_of_script) {
    return start_of_script.starts_with("#!python"); // also pythonw
}

std::string with_interpreter(std::string_view script, std::string_view interpreter) {
    script.remove_prefix(std::min(script.find('\n'), script.size() - 1) + 1);
    return script_start(interpreter) + std::string(script);
}

// Processes that multiprocessing starts import the script, so that it must not run then. A name with .exe
// comes from scripts for Windows, and Python's own tools expect that it is shortened.
std::string entry_point_script(const EntryPoint& command, std::string_view interpreter) {
    const auto first_name = command.function.substr(0, command.function.find('.'));
    return script_start(interpreter) + "import sys\n\nfrom " + command.module + " import " + first_name +
           "\n\nif __name__ == \"__main__\":\n"
           "    if sys.argv[0].endswith(\".exe\"):\n"
           "        sys.argv[0] = sys.argv[0][:-4]\n"
           "    sys.exit(" +
           command.function + "())\n";
}

} // namespace containerize::wheel

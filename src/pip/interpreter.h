// Chooses the Python interpreter for an environment.
#pragma once

#include "core/error.h"
#include "util/process.h"

#include <filesystem>
#include <functional>
#include <string>

namespace containerize::pip {

/// What an interpreter reports about itself.
struct Interpreter {
    std::filesystem::path executable; ///< the real one, behind shims and venvs
    std::filesystem::path base_prefix;
    std::filesystem::path standard_library;
    std::string version; ///< "3.11.2"
    int major = 0, minor = 0;
    bool has_venv = false;
    bool has_ensurepip = false; ///< Debian has it in the package python3-venv
    bool has_pip = false;
};

/// Of Python 3; an older one cannot be used.
inline constexpr int oldest_minor = 8;

/// Whether `text` is a version, such as "3", "3.11" or "3.11.2".
bool is_version(const std::string& text);

/// The program that has the version `wanted`: "python3.11", or "python3" if it is empty.
std::string name_on_path(const std::string& wanted);

/// The program that choose_interpreter() would ask.
Result<std::filesystem::path> find_interpreter(const std::string& wanted, const Environment& environment);

/// `wanted` is a path, a version ("3.11") to find on PATH, or empty for python3 on PATH. Skips wrappers of
/// installations, on which the new environment would depend forever. `environment` is that of the
/// interpreter.
Result<Interpreter> choose_interpreter(const std::string& wanted, const Environment& environment);

/// Like choose_interpreter(), in a root that `in_child` enters: it cannot be examined from outside.
Result<Interpreter> choose_interpreter_inside(const std::string& wanted, const Environment& environment,
                                              const std::function<int()>& in_child);

} // namespace containerize::pip

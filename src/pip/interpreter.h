// Which Python an environment is made from.
#pragma once

#include "util/error.h"
#include "util/process.h"

#include <filesystem>
#include <functional>
#include <string>

namespace containerize::pip {

/// What a Python says of itself.
struct Interpreter {
    std::filesystem::path executable; ///< the real one, behind shims and venvs
    std::filesystem::path base_prefix;
    std::filesystem::path standard_library;
    std::string version; ///< "3.11.2"
    int major = 0, minor = 0;
    bool has_venv = false;
    bool has_ensurepip = false; ///< Debian leaves it to the package python3-venv
    bool has_pip = false;
};

/// `wanted` is a path, a version ("3.11") to be found on PATH, or empty: then python3 on PATH. Wrappers of
/// installations are passed over, because an environment made from one would need that one for ever.
/// `environment` is what the interpreter is run with.
Result<Interpreter> choose_interpreter(const std::string& wanted, const Environment& environment);

/// The same in another root, which a child enters by `in_child`: no file of it can be examined from here.
Result<Interpreter> choose_interpreter_inside(const std::string& wanted, const Environment& environment,
                                              const std::function<int()>& in_child);

} // namespace containerize::pip

// Chooses where a pip environment gets its Python from: from the host, or from conda's channels.
#pragma once

#include "core/error.h"
#include "pip/interpreter.h"
#include "util/process.h"

#include <filesystem>
#include <optional>
#include <string>

namespace containerize::pip {

struct PythonChoice {
    std::optional<Interpreter> interpreter = {}; ///< not set if Python is to be installed from conda packages
    std::string version = {};                    ///< of the conda package ("3.12"); empty: the newest
    std::string reason = {};                     ///< why, in a few words: "python3.12 is not on PATH"
};

/// Whether `wanted` asks for conda's Python: "conda" or "conda:3.12".
bool is_of_conda(const std::string& wanted);

/// Fails with an input error unless `wanted` can be a default: a version, an absolute path, or conda's
/// Python.
Status check_default_python(const std::string& wanted);

/// `wanted` is what choose_interpreter() accepts, or asks for conda's Python. If no path is given and the
/// host has no such Python in which pip environments can be made, conda's is taken.
Result<PythonChoice> choose_python(const std::string& wanted, const std::optional<std::filesystem::path>& uv,
                                   const Environment& environment);

/// A warning, if other nodes than this one possibly lack the interpreter: all but the distribution's own
/// python3. Else empty.
std::string warning_about(const Interpreter& interpreter);

} // namespace containerize::pip

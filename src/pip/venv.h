// The virtual environment that packages go into.
#pragma once

#include "pip/interpreter.h"
#include "util/error.h"
#include "util/process.h"

#include <filesystem>
#include <functional>
#include <optional>

namespace containerize::pip {

/// Whether `interpreter` can make an environment with pip in it: by ensurepip, by its own pip, or with uv.
Status check_venv(const Interpreter& interpreter, const std::optional<std::filesystem::path>& uv);

struct VenvRequest {
    Interpreter interpreter;
    std::optional<std::filesystem::path> uv;
    std::filesystem::path prefix;      ///< where it is made; may hold files already
    bool system_site_packages = false; ///< as `python -m venv` has it
    Environment environment;
    std::function<int()> in_child; ///< joins the build's namespace
};

Status make_venv(const VenvRequest& request);

} // namespace containerize::pip

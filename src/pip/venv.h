// Creates the venv that packages are installed into.
#pragma once

#include "core/error.h"
#include "pip/interpreter.h"
#include "util/process.h"

#include <filesystem>
#include <functional>
#include <optional>

namespace containerize::pip {

/// Fails unless `interpreter` can create a venv with pip: by ensurepip, by its own pip, or with uv.
Status check_venv(const Interpreter& interpreter, const std::optional<std::filesystem::path>& uv);

struct VenvRequest {
    Interpreter interpreter;
    std::optional<std::filesystem::path> uv;
    std::filesystem::path prefix;      ///< the directory to create; may contain files
    bool system_site_packages = false; ///< like the option of `python -m venv`
    bool with_pip = true;
    Environment environment;
    std::function<int()> in_child; ///< joins the build's namespace
};

Status make_venv(const VenvRequest& request);

} // namespace containerize::pip

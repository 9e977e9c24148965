// Taking the interpreter along: a copy of Python with its standard library inside the environment.
#pragma once

#include "pip/interpreter.h"
#include "util/error.h"

#include <filesystem>
#include <functional>

namespace containerize::pip {

struct BundleRequest {
    std::filesystem::path root; ///< the staging directory that stands at `prefix` inside the namespace
    std::filesystem::path prefix;
    Environment environment;
    std::function<int()> in_child; ///< joins the build's namespace
};

/// Copies `original` into PREFIX/python and proves that the copy runs from there with the same modules.
/// Refused, with the reason, where it cannot be moved. Returns the copy.
Result<Interpreter> bundle_python(const Interpreter& original, const BundleRequest& request);

} // namespace containerize::pip

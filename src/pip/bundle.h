// Bundles the interpreter: copies Python and its standard library into the environment.
#pragma once

#include "core/error.h"
#include "pip/interpreter.h"

#include <filesystem>
#include <functional>

namespace containerize::pip {

struct BundleRequest {
    std::filesystem::path root; ///< the staging directory that is mounted at `prefix` in the namespace
    std::filesystem::path prefix;
    Environment environment;
    std::function<int()> in_child; ///< joins the build's namespace
};

/// Copies `original` to PREFIX/python, and verifies that the copy runs there with the same modules. Fails
/// with an input error, with the reason, if the interpreter cannot be moved. Returns the copy.
Result<Interpreter> bundle_python(const Interpreter& original, const BundleRequest& request);

} // namespace containerize::pip

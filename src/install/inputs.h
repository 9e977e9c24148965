// What the user asked for, looked at before anything is made.
#pragma once

#include "install/build.h"
#include "pip/interpreter.h"
#include "spec/requirements.h"
#include "util/error.h"
#include "util/process.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace containerize::install {

struct Inputs {
    std::filesystem::path prefix;            ///< absolute, without links
    std::filesystem::path spec;              ///< likewise
    std::filesystem::path working_directory; ///< the user's; local paths in requirements are relative to it
    spec::Requirements requirements;
    Environment environment; ///< the user's, less what would lead a Python astray
    pip::Interpreter interpreter;
    std::optional<std::filesystem::path> uv;
    std::vector<std::string> wrapper_paths; ///< relative to the prefix, "bin" first
    std::optional<std::uint32_t> source_date_epoch;

    /// Every file that the user gave: requirements with what they include, and scripts.
    std::vector<std::filesystem::path> files;
};

Result<Inputs> check_inputs(const BuildOptions& options);

} // namespace containerize::install

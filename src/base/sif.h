// Apptainer's and Singularity's image files: where in them the root filesystem is.
#pragma once

#include "base/oci.h"
#include "util/error.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace containerize::base {

struct SifImage {
    std::uint64_t offset = 0, size = 0; ///< of the squashfs
    std::string architecture;           ///< "amd64"; empty where the file does not say
    std::optional<ImageConfig> config;  ///< of the OCI image that it was made from, if the file holds it
};

/// Errors for files that are damaged, encrypted, or hold another filesystem than squashfs.
Result<SifImage> read_sif(const std::filesystem::path& file);

/// The variables that a script of /.singularity.d/env exports by plain words; others are left out.
std::vector<std::string> exported_variables(std::string_view script);

} // namespace containerize::base

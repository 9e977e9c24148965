// The image format of Apptainer and Singularity: finds the root filesystem in a .sif file.
#pragma once

#include "base/oci.h"
#include "core/error.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace containerize::base {

struct SifImage {
    std::uint64_t offset = 0, size = 0; ///< of the squashfs
    std::string architecture;           ///< "amd64"; empty if the file does not say
    std::optional<ImageConfig> config;  ///< of the OCI image that it was made from, if the file has it
};

/// Fails for files that are damaged, encrypted, or have another filesystem than squashfs.
Result<SifImage> read_sif(const std::filesystem::path& file);

/// The variables that a script of /.singularity.d/env exports with literal values; others are skipped.
std::vector<std::string> exported_variables(std::string_view script);

} // namespace containerize::base

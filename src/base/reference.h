// What users write to name a base image.
#pragma once

#include "util/error.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace containerize::base {

struct Reference {
    enum class Kind {
        registry,       ///< docker://[HOST/]REPOSITORY[:TAG][@DIGEST]
        oci_directory,  ///< oci:DIRECTORY[:TAG]
        oci_archive,    ///< oci-archive:FILE[:TAG]
        docker_archive, ///< docker-archive:FILE[:NAME:TAG]
        sif,            ///< FILE.sif
        squashfs,       ///< FILE.sqfs, .squashfs, .sfs, .img
        directory,      ///< an unpacked root filesystem
    };
    Kind kind = Kind::registry;
    std::string text; ///< one spelling for all that mean the same: "docker://docker.io/library/debian:12"
    std::filesystem::path path; ///< of all but registries; absolute
    std::string registry;       ///< host, with port if there is one; "docker.io" by its usual name
    std::string repository;     ///< "library/debian"
    std::string tag;            ///< of registries "latest" if neither tag nor digest is given; may be empty
    std::string digest;         ///< "sha256:..."; empty if none is given
};

/// Input errors for what is none of these. Of local things, that they exist is part of it.
Result<Reference> parse_reference(std::string_view text);

/// "sha256:" and 64 hexadecimal digits in lower case.
bool is_digest(std::string_view text);

} // namespace containerize::base

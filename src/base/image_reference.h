// References: what users write to name a base image.
#pragma once

#include "core/error.h"

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
    std::string text;           ///< normalized: "docker://docker.io/library/debian:12"
    std::filesystem::path path; ///< absolute; for all kinds but registry
    std::string registry;       ///< host, with its port if it is given; "docker.io" for Docker Hub
    std::string repository;     ///< "library/debian"
    std::string tag;            ///< "latest" for a registry if neither tag nor digest is given; may be empty
    std::string digest;         ///< "sha256:..."; may be empty
};

/// Parses a reference. Anything else is an input error, and so is a missing file or directory.
Result<Reference> parse_reference(std::string_view text);

/// "sha256:" and 64 hexadecimal digits in lower case.
bool is_digest(std::string_view text);

} // namespace containerize::base

// A base image made only from the host's files: what Python environments need around them, and no more.
#pragma once

#include "base/base_image.h"
#include "core/error.h"

#include <filesystem>

namespace containerize::base {

struct BootstrapOptions {
    bool python = false;          ///< with the host's own python3 and its standard library
    std::filesystem::path output; ///< the image file to make; empty: into the store
};

/// Collects the C library, a shell, the usual tools and certificates, on any distribution, by following what
/// programs say they need. The same host gives the same bytes.
Result<BaseImage> bootstrap(const BootstrapOptions& how, const Options& options);

} // namespace containerize::base

// A base image made of nothing but the host: what Python environments need around them, and no more.
#pragma once

#include "base/base.h"
#include "util/error.h"

#include <filesystem>

namespace containerize::base {

struct BootstrapOptions {
    bool python = false;          ///< with the host's own python3 and its standard library
    std::filesystem::path output; ///< an image file to make; empty: into the store
};

/// The C library, a shell, the usual tools, certificates: what is found on this host, whatever distribution
/// it is, by what programs say that they need. The same host gives the same bytes.
Result<BaseImage> bootstrap(const BootstrapOptions& how, const Options& options);

} // namespace containerize::base

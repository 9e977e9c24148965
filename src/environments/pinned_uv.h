// A version of uv that we know, which resolves requirements where the user has no uv.
#pragma once

#include "core/error.h"
#include "environments/environment_builder.h"
#include "http/http.h"
#include "pip/pip_configuration.h"
#include "spec/requirements.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::environments {

/// Why pip resolves instead, to follow "because": only PyPI is sure to have this uv, and whoever has settings
/// for uv chooses its version, too. Empty if there is no reason. `settings` are pip's.
std::string obstacle_to_pinned_uv(const std::vector<pip::Setting>& settings,
                                  const spec::Requirements& requirements, const Environment& environment);

struct PinnedUv {
    std::filesystem::path program; ///< can be run in the build's namespace
    std::filesystem::path cache;   ///< for UV_CACHE_DIR
};

/// Takes uv from the cache, or downloads it from PyPI, verifies it and puts it there. `http` as for pip.
Result<PinnedUv> pinned_uv(const BuildContext& context, const http::Settings& http, bool offline);

} // namespace containerize::environments

// How to download what pip or uv has resolved: with the logins, certificates and proxy that they would use.
#pragma once

#include "http/http.h"
#include "pip/pip_configuration.h"
#include "spec/requirements.h"
#include "util/process.h"

#include <string>
#include <vector>

namespace containerize::pip {

struct DownloadSettings {
    http::Settings http;
    std::string obstacle = {}; ///< a setting that only pip or uv itself can follow; empty if there is none
};

/// `settings` are pip's. `environment` is that of pip, or of uv if `by_uv`. Logins are those of the addresses
/// of indexes in all of these and in the requirements; http/ reads netrc files.
DownloadSettings download_settings(const std::vector<Setting>& settings,
                                   const spec::Requirements& requirements, const Environment& environment,
                                   bool by_uv);

} // namespace containerize::pip

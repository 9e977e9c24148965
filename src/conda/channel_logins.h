// Reads tokens and passwords that conda's tools keep in files of their own.
#pragma once

#include "conda/conda_config.h"
#include "core/error.h"
#include "util/process.h"

namespace containerize::conda {

/// Adds to `config` the logins stored by mamba (~/.mamba/auth/authentication.json), rattler and pixi
/// ($RATTLER_AUTH_FILE, ~/.rattler/credentials.json) and, if `anaconda`, anaconda-client (*.token). A
/// malformed file is an input error, whose message contains no secrets.
Status read_logins(const Environment& environment, bool anaconda, Config& config);

} // namespace containerize::conda

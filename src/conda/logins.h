// Tokens and passwords that conda's tools keep in files of their own.
#pragma once

#include "conda/config.h"
#include "util/error.h"
#include "util/process.h"

namespace containerize::conda {

/// Adds to `config` what mamba (~/.mamba/auth/authentication.json), rattler and pixi
/// ($RATTLER_AUTH_FILE, ~/.rattler/credentials.json) and, if `anaconda`, anaconda-client (*.token) have
/// stored. A file that is not what it should be is an input error; no message holds a secret.
Status read_logins(const Environment& environment, bool anaconda, Config& config);

} // namespace containerize::conda

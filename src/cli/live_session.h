// The session that has an installation mounted.
#pragma once

#include "runtime/root_key.h"
#include "runtime/session_state.h"

#include <filesystem>
#include <optional>

namespace containerize::cli {

/// This user's on this node, if the installation is mounted in one. It does not end while this lives.
std::optional<runtime::SessionHandle> live_session(const std::filesystem::path& prefix);

} // namespace containerize::cli

// Finds the session that has an installation mounted.
#pragma once

#include "runtime/root_key.h"
#include "runtime/session_state.h"

#include <filesystem>
#include <optional>

namespace containerize::cli {

/// Returns this user's session on this node with the installation mounted. The handle keeps it alive.
std::optional<runtime::SessionHandle> live_session(const std::filesystem::path& prefix);

} // namespace containerize::cli

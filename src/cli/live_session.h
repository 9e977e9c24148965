// Finds the session that has an installation mounted.
#pragma once

#include "launch/root_key.h"
#include "launch/session_state.h"

#include <filesystem>
#include <optional>

namespace containerize::cli {

/// Returns this user's session on this node with the installation mounted. The handle keeps it alive.
std::optional<launch::SessionHandle> live_session(const std::filesystem::path& prefix);

} // namespace containerize::cli

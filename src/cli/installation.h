// Finds the installation that a command is about, and the session that has it mounted.
#pragma once

#include "core/error.h"
#include "launch/session_state.h"

#include <filesystem>
#include <optional>
#include <string>

namespace containerize::cli {

/// Returns the installation `named`; if empty, the active one, else that of the first python on PATH. The
/// path is absolute, without symlinks.
Result<std::filesystem::path> find_installation(const std::string& named);

/// Returns this user's session on this node with the installation mounted. The handle keeps it alive.
std::optional<launch::SessionHandle> live_session(const std::filesystem::path& prefix);

} // namespace containerize::cli

// How systemd-logind treats the processes of a login session.
#pragma once

#include <filesystem>

namespace containerize::session {

/// Whether logind kills all processes of a login session when it ends (KillUserProcesses=), by its
/// configuration below `root`. True if nothing is configured: the default of systemd itself.
bool logins_end_their_processes(const std::filesystem::path& root = "/");

} // namespace containerize::session

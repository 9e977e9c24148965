// How systemd-logind treats what a login has started.
#pragma once

#include <filesystem>

namespace containerize::runtime {

/// Whether it ends all processes of a login with it (KillUserProcesses=), as its configuration below `root`
/// says. Yes where nothing is said: that is how logind comes from its authors.
bool logins_end_their_processes(const std::filesystem::path& root = "/");

} // namespace containerize::runtime

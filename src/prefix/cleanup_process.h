// A process that cleans up after a build, even if the build is killed.
#pragma once

#include "core/error.h"
#include "core/fd.h"

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::prefix {

/// Waits on a socket to the builder. When it closes, because the builder finished, failed or was killed,
/// everything registered is removed, last first. This is the only way of cleaning up, and it works after
/// SIGKILL, too.
class [[nodiscard]] CleanupProcess {
public:
    static Result<CleanupProcess> start();
    CleanupProcess(CleanupProcess&& other) noexcept;
    CleanupProcess& operator=(CleanupProcess&&) = delete;
    ~CleanupProcess(); ///< closes the socket and waits until everything is removed

    /// Kills all processes in the mount namespace of process `in_namespace` before anything is removed, even
    /// if everything is kept. Only for a namespace created for this build.
    void end_processes_first(pid_t in_namespace);
    void remove_tree_later(const std::filesystem::path& path);
    /// Removes the directory only if it is empty and no other build has locked it.
    void remove_directory_later(const std::filesystem::path& path);
    /// Removes unused staging directories below `parent`. This covers the one that is created next, in case
    /// the builder is killed before it can register that.
    void sweep_staging_later(const std::filesystem::path& parent);
    /// Keeps everything registered so far, except these trees.
    void keep_all_but(const std::vector<std::filesystem::path>& trees);

private:
    CleanupProcess(Fd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}
    void tell(char verb, const std::string& what, int file = -1);

    Fd socket_;
    pid_t pid_ = -1;
};

} // namespace containerize::prefix

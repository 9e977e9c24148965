// Cleaning up whatever happens: a process of its own that removes what a build has not declared finished.
#pragma once

#include "util/error.h"
#include "util/fd.h"

#include <filesystem>
#include <string>

#include <sys/types.h>

namespace containerize::install {

/// Waits on a socket to the builder. When that closes, because the builder is done, failed, or was killed, it
/// removes what it was told to, last first. So there is one way of cleaning up, and kill -9 takes it too.
class Janitor {
public:
    static Result<Janitor> start();
    Janitor(Janitor&& other) noexcept;
    Janitor& operator=(Janitor&&) = delete;
    ~Janitor(); ///< closes the socket and waits until all is removed

    /// All that are in the mount namespace of `in_namespace` when the time has come, before anything is
    /// removed; also where all is kept. Only for a namespace that was made for this build.
    void end_processes_first(pid_t in_namespace);
    void remove_tree_later(const std::filesystem::path& path);
    /// Only if it is empty, and no other build has claimed it.
    void remove_directory_later(const std::filesystem::path& path);
    /// Staging directories below `parent` that no build uses: the one that is made next, if nobody lives to
    /// name it.
    void sweep_staging_later(const std::filesystem::path& parent);
    /// Keeps everything registered so far, apart from `staging`.
    void keep_all_but(const std::filesystem::path& staging);

private:
    Janitor(Fd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}
    void tell(char verb, const std::string& what, int file = -1);

    Fd socket_;
    pid_t pid_ = -1;
};

} // namespace containerize::install

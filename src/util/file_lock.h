// Locks on files, by which processes of one user keep out of each other's way. They end with their holder.
#pragma once

#include "util/error.h"
#include "util/fd.h"

#include <filesystem>

#include <sys/types.h>

namespace containerize {

enum class LockState {
    held,        ///< by us, until the descriptor is closed
    busy,        ///< somebody else has it
    unsupported, ///< this file system has no locks (Lustre without -o flock): the file is open, that is all
};

struct FileLock {
    LockState state = LockState::busy;
    Fd file; ///< open for reading and writing; none if busy
};

/// Locks `path`, which is made with `mode` if it is not there. Never waits. What the lock is on is what
/// `path` names at that moment.
Result<FileLock> try_lock(const std::filesystem::path& path, mode_t mode = 0666);

/// As try_lock, but waits until the lock is free, or an interrupt comes.
Result<FileLock> wait_for_lock(const std::filesystem::path& path, mode_t mode = 0666);

} // namespace containerize

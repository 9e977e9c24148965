// Locks on files (flock), which keep processes out of each other's way. They end with their holder.
#pragma once

#include "core/error.h"
#include "core/fd.h"

#include <filesystem>

#include <sys/types.h>

namespace containerize {

enum class LockState {
    held,        ///< by us, until the descriptor is closed
    busy,        ///< another process has it
    unsupported, ///< this filesystem has no locks (Lustre without -o flock); the file is open all the same
};

enum class LockKind {
    exclusive,
    shared ///< with others that lock in the same way
};

struct [[nodiscard]] FileLock {
    LockState state = LockState::busy;
    Fd file; ///< open for reading and writing; none if busy
};

/// Locks the file at `path`, and creates it with `mode` if it is missing. Never waits. If the
/// path names another file by the time of the lock, locks that one instead.
Result<FileLock> try_lock(const std::filesystem::path& path, mode_t mode = 0666,
                          LockKind kind = LockKind::exclusive);

/// The same, but waits until the lock is free. Fails on an interrupt.
Result<FileLock> wait_for_lock(const std::filesystem::path& path, mode_t mode = 0666,
                               LockKind kind = LockKind::exclusive);

} // namespace containerize

#include "util/file_lock.h"

#include "core/interrupt.h"
#include "core/open_file.h"
#include "util/log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

namespace containerize {

Result<FileLock> try_lock(const std::filesystem::path& path, mode_t mode, LockKind kind) {
    const int operation = (kind == LockKind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
    for (;;) {
        Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode));
        if (!file) return fail_errno("cannot open the lock file", path.string());
        if (flock(file.get(), operation) != 0) {
            if (errno == EINTR) continue;
            if (errno == EWOULDBLOCK) return FileLock{};
            return FileLock{LockState::unsupported, std::move(file)};
        }
        // The previous holder may have renamed or removed the file that we opened.
        if (is_named(file, path)) return FileLock{LockState::held, std::move(file)};
    }
}

Result<FileLock> wait_for_lock(const std::filesystem::path& path, mode_t mode, LockKind kind) {
    constexpr int patience_ms = 100;
    bool told = false;
    for (;;) {
        auto lock = try_lock(path, mode, kind);
        if (!lock || lock->state != LockState::busy) return lock;
        if (interrupted()) return fail_interrupted();
        if (!std::exchange(told, true))
            log::detail("waiting for another process that holds the lock on " + path.string());
        pollfd interrupt{.fd = interrupt_fd(), .events = POLLIN, .revents = 0};
        poll(&interrupt, 1, patience_ms);
    }
}

} // namespace containerize

// User and mount namespaces: what every Linux user may have, in the order that works.
#pragma once

#include "util/error.h"
#include "util/fd.h"

#include <filesystem>

#include <sys/types.h>

namespace containerize::runtime {

/// Puts the calling (single-threaded) process into new user and mount namespaces, with the user's own uid and
/// gid, and makes every mount a slave: host mounts still arrive, ours never leave. Fails with the sysctl or
/// permission that is missing, by name.
Status enter_new_namespaces();

/// Moves the calling process into the namespaces of `pid`. errno on failure. Async-signal-safe: usable after
/// fork.
int join_namespaces(pid_t pid);

/// A process that keeps namespaces alive for a build: other processes join it by `pid()`. Killed by the
/// destructor.
class NamespaceHolder {
public:
    /// In the new namespaces, `staging` is bound over `prefix` (both exist).
    static Result<NamespaceHolder> create(const std::filesystem::path& staging,
                                          const std::filesystem::path& prefix);
    NamespaceHolder(NamespaceHolder&& other) noexcept;
    NamespaceHolder& operator=(NamespaceHolder&& other) noexcept;
    ~NamespaceHolder();
    [[nodiscard]] pid_t pid() const { return pid_; }

private:
    explicit NamespaceHolder(pid_t pid) : pid_(pid) {}
    pid_t pid_ = -1;
};

} // namespace containerize::runtime

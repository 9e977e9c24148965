// The owners of files as seen from outside of a user namespace: inside, all files but the user's own appear
// to belong to nobody, root's as well as other users'.
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "core/ownership.h"

#include <sys/types.h>

namespace containerize::mounts {

/// Asks a helper process that stays outside. The helper ends with this process, and with the object.
class [[nodiscard]] OutsideView {
public:
    /// Starts the helper. The caller must have one thread and no namespaces of its own yet.
    static Result<OutsideView> keep();
    OutsideView() = default;

    /// lstat(), with owner and group as they are outside; `unknown_owner` if the helper has ended or cannot
    /// read the file. Valid as long as this object.
    [[nodiscard]] Look look() const;

    /// The helper process; 0 if there is none.
    [[nodiscard]] pid_t helper() const { return helper_; }

    /// Whether the helper has ended, even if its exit was not collected yet.
    [[nodiscard]] bool has_ended() const;

    /// Whether the process that has exited is the helper. Then no owner is known any more.
    bool on_exit(pid_t pid);

private:
    int look_at(const char* path, struct stat* info) const;
    Fd channel_;
    pid_t helper_ = 0;
};

} // namespace containerize::mounts

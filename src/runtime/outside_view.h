// Who files belong to, as it is seen from outside of a user namespace: inside, all that is not this user's
// own belongs to nobody, root's as well as other users'.
#pragma once

#include "util/error.h"
#include "util/fd.h"
#include "util/ownership.h"

namespace containerize::runtime {

/// A process that stays outside and is asked. It ends with this one, and with the object.
class OutsideView {
public:
    /// For a process that has one thread and has made no namespace yet.
    static Result<OutsideView> keep();
    OutsideView() = default;

    /// lstat(), with the owner and the group as they are outside. Valid as long as this object.
    [[nodiscard]] Look look() const;

private:
    int look_at(const char* path, struct stat* info) const;
    Fd channel_;
};

} // namespace containerize::runtime

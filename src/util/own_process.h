// Work that must not change this process.
#pragma once

#include "core/error.h"

#include <functional>

namespace containerize {

/// Calls `work` in a copy of this process, and returns its error. What it changes of itself, such as its
/// priority, its umask and its limits, does not reach this process, which may go on to execute a program. The
/// first interrupt is passed on to the copy. This process must not have threads.
Status in_own_process(const std::function<Status()>& work);

} // namespace containerize

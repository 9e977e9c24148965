// The same work for many things, in several threads.
#pragma once

#include "core/error.h"

#include <cstddef>
#include <functional>

namespace containerize {

/// Calls `work` with each number below `count`, in order, from up to `threads` threads. After a failure, no
/// further call is started, and the first failure is returned.
Status in_parallel(unsigned threads, std::size_t count, const std::function<Status(std::size_t)>& work);

} // namespace containerize

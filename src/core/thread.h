// Threads that are useful but not necessary.
#pragma once

#include <system_error>

namespace containerize {

/// Calls `start`, which makes threads; returns false if this user may have no more of them.
template<class Start>
bool if_threads_are_left(Start start) {
    try {
        start();
        return true;
    } catch (const std::system_error&) {
        return false;
    }
}

} // namespace containerize

// Waits for what other threads and processes do.
#pragma once

#include <chrono>
#include <thread>

namespace containerize::test {

/// Whether the condition becomes true. The limit is long, because machines are busy; it only ends a test that
/// has failed.
template<class Condition>
[[nodiscard]] bool happens(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

} // namespace containerize::test

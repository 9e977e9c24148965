#include "util/in_parallel.h"

#include "core/thread.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <vector>

namespace containerize {

Status in_parallel(unsigned threads, std::size_t count, const std::function<Status(std::size_t)>& work) {
    std::mutex mutex;
    std::size_t next = 0;
    Status result;
    const auto run = [&] {
        for (;;) {
            std::size_t number = 0;
            {
                const std::lock_guard lock(mutex);
                if (!result || next == count) return;
                number = next++;
            }
            auto done = work(number);
            const std::lock_guard lock(mutex);
            if (!done && result) result = std::move(done);
        }
    };
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < std::min<std::size_t>(threads, count); ++i)
        if (!if_threads_are_left([&] { others.emplace_back(run); })) break;
    run();
    others.clear();
    return result;
}

} // namespace containerize

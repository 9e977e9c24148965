// What a server has done, in memory that the session sees too: a successor goes on counting.
#pragma once

#include "image/instruments.h"
#include "runtime/server_deaths.h"
#include "util/error.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace containerize::runtime {

struct ServerStatistics {
    static constexpr std::size_t most_kinds = 64;
    std::array<std::atomic<std::uint64_t>, most_kinds> requests{}; ///< by the kernel's number of their kind
    image::Statistics image;
    ServerProgress progress;
};

/// In memory that processes share which this one forks.
Result<std::shared_ptr<ServerStatistics>> make_shared_statistics();

/// As one JSON object: "requests" by the names of their kinds, and the counters of the image.
std::string to_json(const ServerStatistics& statistics);

} // namespace containerize::runtime

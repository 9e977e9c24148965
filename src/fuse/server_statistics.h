// What a mount's servers have done, in memory shared with the supervisor: a successor goes on counting.
#pragma once

#include "core/error.h"
#include "fuse/server_deaths.h"
#include "image/instruments.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace containerize::fuse {

struct ServerStatistics {
    static constexpr std::size_t most_kinds = 64;
    std::array<std::atomic<std::uint64_t>, most_kinds> requests = {}; ///< by opcode
    image::Statistics image;
    ServerProgress progress;
};

/// Allocates it in memory that this process shares with those that it forks.
Result<std::shared_ptr<ServerStatistics>> make_shared_statistics();

/// Returns one JSON object: "requests" by the names of their opcodes, and the counters of the image.
std::string to_json(const ServerStatistics& statistics);

} // namespace containerize::fuse

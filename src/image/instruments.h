// What a server measures of its reading, and what a test may do to it.
#pragma once

#include "image/profile.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace containerize::image {

/// Counted for all images of a server together. Plain numbers without pointers: it may lie in memory that
/// several processes share.
struct Statistics {
    using Counter = std::atomic<std::uint64_t>;
    static_assert(Counter::is_always_lock_free);

    Counter reads = 0; ///< of the images' files, by whatever asked for them
    Counter bytes_read = 0;
    Counter blocks_wanted = 0; ///< blocks of files that requests needed
    Counter blocks_loaded = 0; ///< of those, how many no cache had
    Counter prefetch_reads = 0;
    Counter prefetch_bytes = 0;   ///< read ahead, gaps between what a profile lists included
    Counter prefetch_blocks = 0;  ///< decompressed before anything wanted them
    Counter prefetch_used = 0;    ///< of those, bytes of blocks that requests needed afterwards
    Counter prefetch_dropped = 0; ///< bytes of blocks that were read ahead, and given up unused
};

struct Instruments {
    std::shared_ptr<Statistics> statistics = std::make_shared<Statistics>();
    /// Before each read of an image's file: a local disk becomes as slow as a busy parallel filesystem.
    std::chrono::microseconds read_delay{0};
    /// Notes which blocks requests want; null, as a rule.
    std::shared_ptr<Recorder> recorder;
};

} // namespace containerize::image

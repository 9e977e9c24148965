// What a server counts while it reads images, and hooks for tests.
#pragma once

#include "image/access_profile.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace containerize::image {

/// Counters for all images of a server. Without pointers, so that several processes can share the memory.
struct Statistics {
    using Counter = std::atomic<std::uint64_t>;
    static_assert(Counter::is_always_lock_free);

    Counter reads = 0; ///< of the image files, for any purpose
    Counter bytes_read = 0;
    Counter blocks_wanted = 0; ///< blocks of files that requests needed
    Counter blocks_loaded = 0; ///< of those, how many were in no cache
    Counter prefetch_reads = 0;
    Counter prefetch_bytes = 0;   ///< including gaps between the listed blocks
    Counter prefetch_blocks = 0;  ///< decompressed before any request needed them
    Counter prefetch_used = 0;    ///< bytes of listed blocks that requests needed
    Counter prefetch_dropped = 0; ///< bytes of blocks that were prefetched and dropped unused
};

struct Instruments {
    std::shared_ptr<Statistics> statistics = std::make_shared<Statistics>();
    /// Delays each read of an image file, to make a local disk as slow as a busy parallel filesystem.
    std::chrono::microseconds read_delay{0};
    /// Records which blocks requests need; usually null.
    std::shared_ptr<Recorder> recorder;
};

} // namespace containerize::image

// Prefetches what profiles list, in large and concurrent requests, and decompresses it on idle cores.
#pragma once

#include "image/access_profile.h"
#include "image/instruments.h"
#include "image/source.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>

namespace containerize::image {

struct PrefetchOptions {
    RequestShape shape;
    unsigned depth = 8;                ///< concurrent requests
    unsigned decompressors = 1;        ///< threads
    std::size_t memory = 128U << 20U;  ///< most bytes of prefetched data that are kept
    std::size_t ahead = 16U << 20U;    ///< most bytes that are decompressed before their use
    std::chrono::seconds patience{30}; ///< everything is dropped after so long without a use
    /// Whether a core is idle; asked before each block is decompressed in advance. Null: always.
    std::function<bool()> idle_core;
    /// Bytes that this process may still use; asked every second. Everything is dropped when little is left.
    std::function<std::uint64_t()> memory_left;
};

/// Requests come first: one for a listed block that was not read yet reads it at once. Blocks that are not
/// listed are not affected. Thread-safe.
class Prefetch {
public:
    /// One image, as its reader describes it. Source and reader outlive this.
    struct Part {
        Source* source;
        std::vector<ProfileBlock> blocks;
        std::uint32_t block_size;
        std::function<void(const ProfileBlock&)> load; ///< decompresses a block into the reader's cache
    };
    Prefetch(std::vector<Part> parts, PrefetchOptions options, std::shared_ptr<Statistics> statistics);
    ~Prefetch();
    Prefetch(const Prefetch&) = delete;
    Prefetch& operator=(const Prefetch&) = delete;

    /// Starts the threads. To be called once the readers use this.
    void start();

    /// The stored bytes of a listed block of the image number `part`, which are read now if they were not;
    /// nullopt if the block is not listed or was dropped.
    std::optional<Slice> range(std::size_t part, std::uint64_t offset, std::size_t size);
    /// To be called when a request needs this block.
    void wanted(std::size_t part, const ProfileBlock& block);
    /// To be called when it was decompressed: its stored bytes are needed no more.
    void loaded(std::size_t part, const ProfileBlock& block);
    /// Whether prefetching has ended, and everything was dropped.
    [[nodiscard]] bool finished() const { return stopped_; }

private:
    enum class State { waiting, reading, ready, gone };
    struct Block {
        ProfileBlock place;
        std::size_t part = 0;
        bool loaded = false, used = false;
    };
    struct Piece {
        Extent extent;
        std::size_t part = 0;
        State state = State::waiting;
        bool was_read = false;
        std::shared_ptr<std::byte[]> data = {};
        std::vector<std::size_t> blocks = {}; ///< those that lie in it, at least in part
        std::size_t left = 0;                 ///< how many of these are not decompressed yet
    };
    using Lock = std::unique_lock<std::mutex>;

    void plan(std::size_t part, std::vector<ProfileBlock> blocks, const RequestShape& shape);
    void while_memory_lasts(void (Prefetch::*work)());
    void read_ahead();
    void decompress_ahead();
    void watch(const std::stop_token& stop);

    /// Releases the lock while it reads.
    void read(Piece& piece, Lock& lock);
    bool is_ready(Piece& piece, Lock& lock);
    void release(Piece& piece);
    void make_room(std::size_t size);
    [[nodiscard]] bool has_room(std::size_t size) const;
    /// Drops everything. The caller holds the lock.
    void finish();
    [[nodiscard]] bool is_behind(std::size_t block) const;
    [[nodiscard]] std::optional<std::size_t> piece_at(std::size_t part, std::uint64_t offset) const;
    [[nodiscard]] std::optional<std::size_t> find(std::size_t part, const ProfileBlock& block) const;
    /// The numbers of the pieces that a block lies in.
    [[nodiscard]] std::vector<std::size_t> pieces_of(const Block& block) const;

    std::vector<Part> parts_;
    const PrefetchOptions options_;
    std::shared_ptr<Statistics> statistics_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::condition_variable_any watched_;
    std::atomic<bool> stopped_{false};
    std::vector<Block> blocks_; ///< in the order in which requests should need them
    std::vector<Piece> pieces_; ///< in the same order
    std::vector<std::unordered_map<std::uint64_t, std::size_t>> numbers_; ///< of blocks, by part and start
    std::vector<std::map<std::uint64_t, std::size_t>> places_;            ///< of pieces, by part and begin
    std::size_t next_piece_ = 0;
    std::size_t next_block_ = 0;
    std::size_t furthest_ = 0;    ///< number of the furthest block that was wanted
    std::size_t held_ = 0;        ///< bytes of pieces
    std::set<std::size_t> ahead_; ///< blocks that were decompressed but not wanted yet
    std::chrono::steady_clock::time_point last_use_ = std::chrono::steady_clock::now();
    std::vector<std::jthread> threads_;
};

} // namespace containerize::image

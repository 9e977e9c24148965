// Reads an image file in pieces that suit a parallel filesystem.
#pragma once

#include "core/fd.h"
#include "image/instruments.h"
#include "image/loading_cache.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <vector>

namespace containerize::image {

/// Bytes of an image or of a file in it, valid as long as `pin` lives.
struct Slice {
    std::shared_ptr<const void> pin;
    std::span<const std::byte> bytes;
};

/// Rounds reads of compressed blocks to aligned chunks and keeps the latest, because blocks that are wanted
/// together lie together, and a read costs about the same for 30 KB as for a chunk. Thread-safe.
class Source {
public:
    /// The image starts at `start` of a file of `file_size` bytes. `sharing` is the number of sources that
    /// share the memory for chunks.
    Source(Fd file, std::uint64_t start, std::uint64_t file_size, std::size_t sharing,
           const Instruments& instruments);

    /// `offset` is relative to the image's start. EIO if the range is not wholly within the file.
    std::expected<Slice, int> range(std::uint64_t offset, std::size_t size);

    /// Reads directly into `out`, past the cache: for tables, which are read once.
    std::expected<void, int> read(std::uint64_t offset, std::span<std::byte> out);

    /// Drops all chunks. Returns their size in bytes.
    std::size_t drop_caches() { return chunks_.clear(); }

    /// The file, and where the image starts in it.
    [[nodiscard]] int file() const { return file_.get(); }
    [[nodiscard]] std::uint64_t start() const { return start_; }
    /// Bytes from the image's start to the file's end.
    [[nodiscard]] std::uint64_t size() const { return file_size_ - start_; }

private:
    struct Chunk {
        std::vector<std::byte> data;
        [[nodiscard]] std::size_t bytes() const { return data.size(); }
    };
    LoadingCache<Chunk>::Loaded chunk(std::uint64_t index);

    std::expected<void, int> read_file(std::uint64_t file_offset, std::span<std::byte> out);

    Fd file_;
    std::uint64_t start_;
    std::uint64_t file_size_;
    LoadingCache<Chunk> chunks_;
    Instruments instruments_;
};

} // namespace containerize::image

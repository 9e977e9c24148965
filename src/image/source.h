// The bytes of an image file, read in pieces that suit a parallel filesystem.
#pragma once

#include "image/instruments.h"
#include "image/loading_cache.h"
#include "util/fd.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <vector>

namespace containerize::image {

/// Reads of compressed blocks are rounded out to aligned chunks and the latest chunks are kept, because
/// blocks that are wanted together lie together, and a read costs about the same for 30 KB as for a chunk.
/// Thread-safe.
class Source {
public:
    /// The image starts at `start` of the file, which has `file_size` bytes. `sharing`: how many sources
    /// share the memory for chunks.
    Source(Fd file, std::uint64_t start, std::uint64_t file_size, std::size_t sharing,
           const Instruments& instruments);

    /// A contiguous range, valid as long as `pin` lives.
    struct Range {
        std::shared_ptr<const void> pin;
        std::span<const std::byte> bytes;
    };
    /// `offset` counts from the image's start. EIO where the range is not wholly within the file.
    std::expected<Range, int> range(std::uint64_t offset, std::size_t size);

    /// Straight into `out`, past the chunks: for tables that are read once.
    std::expected<void, int> read(std::uint64_t offset, std::span<std::byte> out);

    /// Lets go of what was read; how many bytes.
    std::size_t shed() { return chunks_.clear(); }

    /// From the image's start to the file's end.
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

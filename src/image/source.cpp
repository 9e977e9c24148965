#include "image/source.h"

#include "core/read_write.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include <unistd.h>

namespace containerize::image {

namespace {
constexpr std::uint64_t chunk_size = 256U << 10U;
constexpr std::size_t cached_bytes = 16U << 20U;
} // namespace

Source::Source(Fd file, std::uint64_t start, std::uint64_t file_size, std::size_t sharing,
               const Instruments& instruments)
    : file_(std::move(file)), start_(start), file_size_(file_size), chunks_(cached_bytes / sharing),
      instruments_(instruments) {}

std::expected<void, int> Source::read(std::uint64_t offset, std::span<std::byte> out) {
    if (offset > size() || out.size() > size() - offset) return std::unexpected(EIO);
    return read_file(start_ + offset, out);
}

std::expected<void, int> Source::read_file(std::uint64_t file_offset, std::span<std::byte> out) {
    if (instruments_.read_delay.count() > 0) std::this_thread::sleep_for(instruments_.read_delay);
    const auto got = read_all_at(file_.get(), out.data(), out.size(), static_cast<off_t>(file_offset));
    // A file that was truncated while mounted must not look like zeros.
    if (got != static_cast<ssize_t>(out.size())) return std::unexpected(got < 0 ? errno : EIO);
    instruments_.statistics->reads.fetch_add(1, std::memory_order_relaxed);
    instruments_.statistics->bytes_read.fetch_add(out.size(), std::memory_order_relaxed);
    return {};
}

LoadingCache<Source::Chunk>::Loaded Source::chunk(std::uint64_t index) {
    return chunks_.get(index, [&]() -> LoadingCache<Chunk>::Loaded {
        const std::uint64_t begin = index * chunk_size;
        auto chunk = std::make_shared<Chunk>();
        chunk->data.resize(std::min(chunk_size, file_size_ - begin));
        TRY(read_file(begin, chunk->data));
        return chunk;
    });
}

std::expected<Slice, int> Source::range(std::uint64_t offset, std::size_t size) {
    if (offset > this->size() || size > this->size() - offset) return std::unexpected(EIO);
    if (size == 0) return Slice{};
    offset += start_; // chunks are aligned in the file, wherever the image starts in it
    const std::uint64_t first = offset / chunk_size;
    const std::uint64_t last = (offset + size - 1) / chunk_size;
    if (first == last) {
        auto loaded = TRY(chunk(first));
        return Slice{.pin = loaded, .bytes = std::span(loaded->data).subspan(offset % chunk_size, size)};
    }
    // A block that spans chunks is copied to a buffer of its own.
    auto joined = std::make_shared<std::vector<std::byte>>(size);
    std::size_t done = 0;
    for (std::uint64_t index = first; index <= last; ++index) {
        auto loaded = TRY(chunk(index));
        const auto& data = loaded->data;
        const std::size_t start = index == first ? offset % chunk_size : 0;
        const std::size_t count = std::min(data.size() - start, size - done);
        std::memcpy(joined->data() + done, data.data() + start, count);
        done += count;
    }
    return Slice{.pin = joined, .bytes = *joined};
}

} // namespace containerize::image

// Decompression by libsquashfs, usable from any thread.
#pragma once

#include "image/squashfs_objects.h"

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace containerize::image {

/// The flag of a data block that is stored as it is, in the field with its size.
inline constexpr std::uint32_t block_stored_uncompressed = 1U << 24U;

/// A pool, because a libsquashfs compressor is for one thread at a time.
class Decompressor {
public:
    /// EINVAL if this build does not know the compressor.
    static std::expected<std::unique_ptr<Decompressor>, int> create(const sqfs_super_t& super);

    /// Returns the number of bytes written to `out`; EIO if `in` is damaged or does not fit.
    std::expected<std::size_t, int> decompress(std::span<const std::byte> in, std::span<std::byte> out);

private:
    using Instance = SquashfsObject<sqfs_compressor_t>;

    Decompressor() = default;
    std::expected<Instance, int> make() const;

    sqfs_compressor_config_t config_ = {};
    std::mutex mutex_;
    std::vector<Instance> idle_;
};

} // namespace containerize::image

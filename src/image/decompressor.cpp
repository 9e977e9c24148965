#include "image/decompressor.h"

#include <cerrno>
#include <utility>

#include <sqfs/predef.h>

namespace containerize::image {

std::expected<std::unique_ptr<Decompressor>, int> Decompressor::create(const sqfs_super_t& super) {
    if (super.compression_id < SQFS_COMP_MIN || super.compression_id > SQFS_COMP_MAX)
        return std::unexpected(EINVAL);
    auto decompressor = std::unique_ptr<Decompressor>(new Decompressor);
    const auto id = static_cast<SQFS_COMPRESSOR>(super.compression_id);
    if (sqfs_compressor_config_init(&decompressor->config_, id, super.block_size,
                                    SQFS_COMP_FLAG_UNCOMPRESS) != 0)
        return std::unexpected(EINVAL);
    auto first = TRY(decompressor->make());
    decompressor->idle_.push_back(std::move(first));
    return decompressor;
}

std::expected<Decompressor::Instance, int> Decompressor::make() const {
    sqfs_compressor_t* compressor = nullptr;
    if (sqfs_compressor_create(&config_, &compressor) != 0) return std::unexpected(EINVAL);
    return Instance(compressor);
}

std::expected<std::size_t, int> Decompressor::decompress(std::span<const std::byte> in,
                                                         std::span<std::byte> out) {
    Instance instance;
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            instance = std::move(idle_.back());
            idle_.pop_back();
        }
    }
    if (!instance) instance = TRY(make());
    const auto written = instance->do_block(
        instance.get(), reinterpret_cast<const sqfs_u8*>(in.data()), static_cast<sqfs_u32>(in.size()),
        reinterpret_cast<sqfs_u8*>(out.data()), static_cast<sqfs_u32>(out.size()));
    {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(instance));
    }
    if (written <= 0) return std::unexpected(EIO);
    return static_cast<std::size_t>(written);
}

} // namespace containerize::image

// The inode and directory tables of an image: chains of compressed blocks of at most 8 KiB.
#pragma once

#include "core/error.h"
#include "image/decompressor.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <vector>

namespace containerize::image {

inline constexpr std::size_t metadata_block_size = 8192;
/// Bytes of a directory's listing, which takes a few times as much memory: more than a million names.
inline constexpr std::uint32_t largest_listing = 32U << 20U;
/// Limit for one table: 2 GiB after decompression, enough for twenty million files.
inline constexpr std::size_t most_metadata_blocks = std::size_t{1} << 18U;
/// Limit for all tables of an image together, in bytes as stored.
inline constexpr std::uint64_t largest_tables = std::uint64_t{1} << 30U;

struct MetadataBlock {
    std::size_t size = 0;
    std::array<std::byte, metadata_block_size> data;
};
/// Decompresses the block at `position` of `raw`, and advances `position` past it. EIO if no whole block is
/// there.
std::expected<void, int> read_block(std::span<const std::byte> raw, std::uint64_t& position,
                                    Decompressor& decompressor, MetadataBlock& out);

/// One table. It stays compressed in memory as it was read; its blocks are decompressed at their first use
/// and then kept (about 100 bytes for each file of the image). Thread-safe without locks.
class MetadataTable {
public:
    /// `raw` starts with the table's first block and ends where the next table starts. EIO if its block
    /// headers do not add up, or are too many.
    static std::expected<std::unique_ptr<MetadataTable>, int> create(std::vector<std::byte> raw,
                                                                     Decompressor& decompressor);
    ~MetadataTable();
    MetadataTable(const MetadataTable&) = delete;
    MetadataTable& operator=(const MetadataTable&) = delete;

    /// A position in the table, which advances with each read, across blocks.
    class Cursor {
    public:
        Cursor(const MetadataTable& table, std::size_t block, std::size_t offset)
            : table_(&table), block_(block), offset_(offset) {}
        /// EIO past the end of the table.
        std::expected<void, int> read(std::span<std::byte> out);
        std::expected<void, int> skip(std::size_t size);
        [[nodiscard]] bool at_end() const { return block_ == table_->starts_.size(); }
        template<class T>
        std::expected<T, int> read() {
            static_assert(std::is_trivially_copyable_v<T>);
            T value;
            TRY(read(std::as_writable_bytes(std::span(&value, 1))));
            return value;
        }

    private:
        /// Returns the next bytes, at least one and at most `size`, and advances past them.
        std::expected<std::span<const std::byte>, int> take(std::size_t size);

        const MetadataTable* table_;
        std::size_t block_;
        std::size_t offset_;
    };

    /// A cursor in the block that starts at `start` in the table, at `offset` of its decompressed bytes. EIO
    /// if no block starts there.
    std::expected<Cursor, int> at(std::uint64_t start, std::size_t offset) const;

private:
    MetadataTable(std::vector<std::byte> raw, Decompressor& decompressor);
    std::expected<const MetadataBlock*, int> block(std::size_t index) const;

    std::vector<std::byte> raw_;
    Decompressor& decompressor_;
    std::vector<std::uint64_t> starts_; ///< position of each block's header in raw_
    mutable std::vector<std::atomic<const MetadataBlock*>> blocks_; ///< null until first used
};

} // namespace containerize::image

// squashfs images that no tool would make: the content of their tables is packed unchecked.
#pragma once

#include "image/squashfs_objects.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <sqfs/block.h>
#include <sqfs/dir.h>
#include <sqfs/inode.h>
#include <sqfs/xattr.h>

namespace containerize::test {

/// The tables before they are cut into blocks and compressed. Offsets in them serve as references, which is
/// right as long as each table fits in one block, as in small images.
struct SquashfsImage {
    SQFS_COMPRESSOR compressor = SQFS_COMP_ZSTD;
    bool compress_tables = false;
    std::uint16_t block_log = 17;
    std::uint64_t root = 0;
    std::string data; ///< begins at byte 96 of the image
    std::string inodes, listings, fragments, xattrs, xattr_sets;

    static constexpr std::uint64_t data_start = sizeof(sqfs_super_t);
};

template<class T>
void append(std::string& bytes, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

namespace detail {

class TableWriter {
public:
    explicit TableWriter(const SquashfsImage& image) {
        sqfs_compressor_config_t config;
        sqfs_compressor_t* compressor = nullptr;
        if (image.compress_tables &&
            sqfs_compressor_config_init(&config, image.compressor, std::size_t{1} << image.block_log, 0) ==
                0 &&
            sqfs_compressor_create(&config, &compressor) == 0)
            compressor_.reset(compressor);
    }

    /// Appends the blocks of a table; returns the offset of each.
    std::vector<std::uint64_t> write(std::string& bytes, std::string_view table) const {
        constexpr std::size_t block_size = 8192;
        constexpr std::uint16_t uncompressed = 0x8000;
        std::vector<std::uint64_t> starts;
        for (; !table.empty(); table.remove_prefix(std::min(block_size, table.size()))) {
            const auto block = table.substr(0, block_size);
            std::array<sqfs_u8, block_size> packed;
            const auto size = compressor_ == nullptr
                                  ? 0
                                  : compressor_->do_block(
                                        compressor_.get(), reinterpret_cast<const sqfs_u8*>(block.data()),
                                        static_cast<sqfs_u32>(block.size()), packed.data(), packed.size());
            starts.push_back(bytes.size());
            const bool smaller = size > 0 && static_cast<std::size_t>(size) < block.size();
            append(bytes, static_cast<std::uint16_t>(smaller ? static_cast<std::size_t>(size)
                                                             : uncompressed | block.size()));
            if (smaller)
                bytes.append(reinterpret_cast<const char*>(packed.data()), static_cast<std::size_t>(size));
            else
                bytes.append(block);
        }
        return starts;
    }

    /// Like write(), followed by an index of the block offsets; returns the offset of that index.
    std::uint64_t write_indexed(std::string& bytes, std::string_view table,
                                std::string_view header = {}) const {
        const auto starts = write(bytes, table);
        const auto index = bytes.size();
        bytes.append(header);
        for (const auto start : starts)
            append(bytes, start);
        return index;
    }

private:
    image::SquashfsObject<sqfs_compressor_t> compressor_; ///< null: blocks are stored uncompressed
};

} // namespace detail

/// The bytes of the image file.
inline std::string to_bytes(const SquashfsImage& image) {
    constexpr auto none = ~std::uint64_t{0};
    const detail::TableWriter tables(image);
    sqfs_super_t super{};
    super.magic = SQFS_MAGIC;
    super.version_major = SQFS_VERSION_MAJOR;
    super.version_minor = SQFS_VERSION_MINOR;
    super.compression_id = static_cast<sqfs_u16>(image.compressor);
    super.block_log = image.block_log;
    super.block_size = 1U << image.block_log;
    super.root_inode_ref = image.root;
    super.inode_count = 1000;
    super.id_count = 1;
    super.export_table_start = super.fragment_table_start = super.xattr_id_table_start = none;

    std::string bytes(sizeof super, '\0');
    bytes += image.data;
    super.inode_table_start = bytes.size();
    tables.write(bytes, image.inodes);
    super.directory_table_start = bytes.size();
    tables.write(bytes, image.listings);
    super.fragment_entry_count = static_cast<sqfs_u32>(image.fragments.size() / sizeof(sqfs_fragment_t));
    if (super.fragment_entry_count > 0)
        super.fragment_table_start = tables.write_indexed(bytes, image.fragments);
    super.id_table_start = tables.write_indexed(bytes, std::string_view("\0\0\0\0", 4));
    if (!image.xattr_sets.empty()) {
        sqfs_xattr_id_table_t header{};
        header.xattr_table_start = bytes.size();
        header.xattr_ids = static_cast<sqfs_u32>(image.xattr_sets.size() / sizeof(sqfs_xattr_id_t));
        tables.write(bytes, image.xattrs);
        std::string head;
        append(head, header);
        super.xattr_id_table_start = tables.write_indexed(bytes, image.xattr_sets, head);
    }
    super.bytes_used = bytes.size();
    std::memcpy(bytes.data(), &super, sizeof super);
    return bytes;
}

struct SquashfsEntry {
    std::string name;
    std::uint64_t inode;
    std::uint16_t type;
};

/// The reference that the next inode will get.
inline std::uint64_t next_inode(const SquashfsImage& image) {
    return image.inodes.size();
}

template<class Fields>
std::uint64_t add_inode(SquashfsImage& image, std::uint16_t type, const Fields& fields) {
    const auto reference = next_inode(image);
    sqfs_inode_t head{};
    head.type = type;
    head.mode = 0755;
    head.inode_number = static_cast<sqfs_u32>(reference + 1);
    append(image.inodes, head);
    append(image.inodes, fields);
    return reference;
}

/// Adds a directory with these entries, whose inodes need not exist yet; returns its reference.
inline std::uint64_t add_directory(SquashfsImage& image, const std::vector<SquashfsEntry>& entries,
                                   std::uint32_t xattrs = 0xFFFFFFFF) {
    sqfs_inode_dir_ext_t directory{};
    directory.nlink = 2;
    directory.offset = static_cast<sqfs_u16>(image.listings.size());
    directory.xattr_idx = xattrs;
    for (const auto& entry : entries) {
        sqfs_dir_header_t header{};
        header.start_block = static_cast<sqfs_u32>(entry.inode >> 16U);
        append(image.listings, header);
        append(image.listings, static_cast<std::uint16_t>(entry.inode));
        append(image.listings, std::int16_t{0});
        append(image.listings, entry.type);
        append(image.listings, static_cast<std::uint16_t>(entry.name.size() - 1));
        image.listings += entry.name;
    }
    directory.size = static_cast<sqfs_u32>(image.listings.size() - directory.offset + 3);
    return add_inode(image, SQFS_INODE_EXT_DIR, directory);
}

/// Adds a file whose data is one fragment.
inline std::uint64_t add_file(SquashfsImage& image, std::uint32_t size, std::uint32_t fragment) {
    sqfs_inode_file_t file{};
    file.file_size = size;
    file.fragment_index = fragment;
    return add_inode(image, SQFS_INODE_FILE, file);
}

} // namespace containerize::test

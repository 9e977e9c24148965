// Reading a squashfs image: names, attributes and content, from many threads at once.
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "image/decompressor.h"
#include "image/loading_cache.h"
#include "image/metadata.h"
#include "image/prefetch.h"
#include "image/source.h"

#include <atomic>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sqfs/block.h>
#include <sqfs/xattr.h>
#include <sys/types.h>

namespace containerize::image {

/// The position of an inode: bits 16 to 47 are its block in the inode table, bits 0 to 15 the offset in that.
/// 0 is valid.
using Reference = std::uint64_t;

/// An inode as far as the server shows it. Owners are not kept: every file is shown as the user's.
struct Inode {
    mode_t mode = 0; ///< with the type bits
    std::uint64_t number = 0;
    std::uint32_t nlink = 1;
    std::uint32_t mtime = 0;
    std::uint32_t rdev = 0;
    std::uint32_t xattrs = no_xattrs; ///< number of the set (Reader::xattrs)
    std::uint64_t size = 0;

    // For directories: position of the listing, and its size in bytes.
    std::uint32_t listing_block = 0;
    std::uint32_t listing_offset = 0;
    std::uint32_t listing_size = 0;
    // For files.
    std::uint64_t data_start = 0;
    std::uint32_t fragment = no_fragment;
    std::uint32_t fragment_offset = 0;

    static constexpr std::uint32_t no_fragment = 0xFFFFFFFF;
    static constexpr std::uint32_t no_xattrs = 0xFFFFFFFF;
};

/// Where the content of a regular file is stored in its image.
struct StoredFile {
    std::uint64_t size = 0;                      ///< of the content
    std::uint64_t start = 0;                     ///< of its first block; the others follow without gaps
    std::vector<std::uint32_t> blocks;           ///< their size fields, as of ProfileBlock; 0 for a hole
    std::uint32_t fragment = Inode::no_fragment; ///< number of the block that has the file's end
    std::uint32_t fragment_offset = 0;           ///< in that block's content

    [[nodiscard]] std::uint64_t stored() const; ///< bytes of all blocks but the fragment
};

struct Xattr {
    std::string name; ///< including the namespace: "user.comment"
    std::string value;
};

/// The listing of a directory, sorted by the bytes of the names; without "." and "..".
struct Directory {
    struct Entry {
        Reference inode = 0;
        std::uint32_t name_start = 0;
        std::uint16_t name_size = 0;
        std::uint8_t type = 0; ///< DT_REG and the like
    };
    std::vector<Entry> entries;
    std::string names;

    [[nodiscard]] std::string_view name(const Entry& entry) const {
        return std::string_view(names).substr(entry.name_start, entry.name_size);
    }
    /// Null if there is no such name.
    [[nodiscard]] const Entry* find(std::string_view name) const;
    [[nodiscard]] std::size_t bytes() const {
        return entries.size() * sizeof(Entry) + names.size() + sizeof *this;
    }
};

/// One image. Thread-safe. Errors are errno values, EIO for all damage: the image is not trusted, and each
/// field is checked before use.
class Reader {
public:
    /// The image starts at `offset` of the file; errors name `path`. `sharing` is the number of readers that
    /// share the memory for decompressed data.
    static Result<std::unique_ptr<Reader>> open(Fd file, const std::filesystem::path& path,
                                                std::size_t sharing = 1, std::uint64_t offset = 0,
                                                const Instruments& instruments = {});
    /// Checks the header only: that this is a squashfs image, not truncated, and of a known compressor.
    static Status check(int file, const std::filesystem::path& path, std::uint64_t offset = 0);

    [[nodiscard]] Reference root() const { return super_.root_inode_ref; }
    [[nodiscard]] std::uint32_t block_size() const { return super_.block_size; }
    [[nodiscard]] std::uint32_t inode_count() const { return super_.inode_count; }
    [[nodiscard]] const std::string& name() const { return name_; }
    /// By squashfs's numbers, as Compressor.
    [[nodiscard]] std::uint16_t compressor() const { return super_.compression_id; }
    /// Where blocks of files end and the tables start.
    [[nodiscard]] std::uint64_t end_of_blocks() const { return super_.inode_table_start; }
    [[nodiscard]] const Source& source() const { return source_; }

    /// Drops cached data, which can be read again. Returns its size in bytes.
    std::size_t drop_caches() { return blocks_.clear() + source_.drop_caches(); }

    std::expected<Inode, int> inode(Reference reference) const;
    LoadingCache<Directory>::Loaded directory(Reference reference);
    /// ENOENT if there is no such name.
    std::expected<Reference, int> lookup(Reference directory, std::string_view name);
    std::expected<std::string, int> read_link(Reference reference) const;
    /// Appends to `out` the file's bytes from `offset` on, at most `size`; none at its end.
    std::expected<void, int> read(Reference reference, std::uint64_t offset, std::size_t size,
                                  std::vector<Slice>& out);

    /// The blocks of a profile that may be data of this image; nothing else that it lists may be read.
    [[nodiscard]] std::vector<ProfileBlock> possible(const std::vector<ProfileBlock>& blocks) const;
    /// part() describes this image for a prefetch; use() lets it use that prefetch, in which it is part
    /// `number`.
    Prefetch::Part part(std::vector<ProfileBlock> blocks);
    void use(Prefetch& prefetch, std::size_t number);
    /// The blocks of a file, its fragment last.
    std::expected<std::vector<ProfileBlock>, int> blocks_of(Reference reference);

    /// For linking a file into another image. EIO unless all of its blocks lie before end_of_blocks().
    std::expected<StoredFile, int> stored_file(Reference reference) const;
    /// The block that holds the ends of several files. EIO unless it lies before end_of_blocks().
    [[nodiscard]] std::expected<ProfileBlock, int> fragment(std::uint32_t number) const;

    /// Whether any extended attribute has a name that does not start with `beginning`; true in case of doubt.
    [[nodiscard]] bool has_xattrs_other_than(std::string_view beginning) const;
    /// The extended attributes of a set; none for no_xattrs.
    std::expected<std::vector<Xattr>, int> xattrs(std::uint32_t set) const;

private:
    struct Block {
        std::unique_ptr<std::byte[]> data;
        std::size_t size = 0;
        std::uint32_t size_field = 0; ///< with which it was read
        [[nodiscard]] std::size_t bytes() const { return size; }
    };
    /// The start and the size field of each block of a file; bit 24 of the latter means stored uncompressed.
    struct FileMap {
        std::vector<std::uint64_t> starts;
        std::vector<std::uint32_t> sizes;
        [[nodiscard]] std::size_t bytes() const { return starts.size() * 12 + sizeof *this; }
    };

    Reader(Fd file, std::uint64_t offset, std::uint64_t file_size, const sqfs_super_t& super,
           std::unique_ptr<Decompressor> decompressor, std::size_t sharing, std::string name,
           const Instruments& instruments);
    /// The bytes of all tables, from the inode table on.
    std::expected<std::vector<std::byte>, int> read_tables();
    std::expected<void, int> load_tables(std::span<const std::byte> tables);
    /// Reads a value. `elsewhere`: only its position is here.
    std::expected<std::string, int> xattr_value(MetadataTable::Cursor& at, bool elsewhere) const;
    /// The entries of a table, by the index of its blocks at position `index`.
    template<class Entry>
    std::expected<std::vector<Entry>, int> indexed_table(std::span<const std::byte> tables,
                                                         std::uint64_t index, std::size_t count);

    std::expected<MetadataTable::Cursor, int> inode_at(Reference reference, Inode& inode) const;
    std::expected<Directory, int> parse_directory(const Inode& inode) const;
    LoadingCache<FileMap>::Loaded file_map(Reference reference);
    /// For a request.
    LoadingCache<Block>::Loaded block(const ProfileBlock& place);
    /// From the cache or the image; `loads` counts the latter. Null if no request needs the block yet.
    LoadingCache<Block>::Loaded load(const ProfileBlock& place, Statistics::Counter* loads);
    LoadingCache<Block>::Loaded decompressed(const ProfileBlock& place);
    [[nodiscard]] std::uint64_t block_count(const Inode& inode) const;

    std::string name_; ///< of the file, for records
    std::shared_ptr<Statistics> statistics_;
    std::shared_ptr<Recorder> recorder_; ///< usually null
    std::atomic<Prefetch*> prefetch_{nullptr};
    std::size_t part_ = 0; ///< number of this image in the prefetch
    Source source_;
    sqfs_super_t super_;
    std::unique_ptr<Decompressor> decompressor_;
    std::unique_ptr<MetadataTable> inodes_;
    std::unique_ptr<MetadataTable> listings_;
    std::unique_ptr<MetadataTable> xattrs_; ///< null if there are none
    std::vector<sqfs_fragment_t> fragments_;
    std::vector<sqfs_xattr_id_t> xattr_sets_;
    LoadingCache<Block> blocks_;
    LoadingCache<Directory> directories_;
    LoadingCache<FileMap> file_maps_;
};

} // namespace containerize::image

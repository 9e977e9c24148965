#include "image/reader.h"

#include "core/read_write.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include <dirent.h>
#include <sqfs/dir.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::image {

namespace {

constexpr std::size_t block_cache_bytes = 32U << 20U;
constexpr std::size_t directory_cache_bytes = 8U << 20U;
constexpr std::size_t file_map_cache_bytes = 4U << 20U;
constexpr std::uint64_t no_table = ~std::uint64_t{0};
constexpr std::uint32_t stored_size_mask = block_stored_uncompressed - 1;
// Linux's limits for a value, and for the names of all attributes of a file; for all values of a file, more
// than any filesystem that is packed allows.
constexpr std::size_t longest_xattr = 64U << 10U;
constexpr std::size_t most_xattr_names = 64U << 10U;
constexpr std::size_t most_xattr_values = 1U << 20U;
/// Limit for fragments and for sets of extended attributes: enough for half a terabyte, or for as many files.
constexpr std::size_t most_entries = std::size_t{1} << 22U;
/// A terabyte, with the usual size of blocks.
constexpr std::uint64_t most_blocks_of_file = std::uint64_t{1} << 23U;
/// Flag: the value is stored elsewhere, at a position that is here instead.
constexpr std::uint16_t xattr_value_elsewhere = 0x100;
constexpr std::string_view xattr_namespaces[] = {"user.", "trusted.", "security."};
/// The size field of a listing includes three bytes for "." and "..", which are not stored.
constexpr std::uint32_t listing_extra = 3;
constexpr std::size_t longest_name = 255;

/// The content of a hole.
constexpr std::array<std::byte, SQFS_MAX_BLOCK_SIZE> zeros{};

constexpr mode_t type_bits[] = {0, S_IFDIR, S_IFREG, S_IFLNK, S_IFBLK, S_IFCHR, S_IFIFO, S_IFSOCK};
constexpr std::uint8_t directory_types[] = {DT_UNKNOWN, DT_DIR, DT_REG,  DT_LNK,
                                            DT_BLK,     DT_CHR, DT_FIFO, DT_SOCK};
constexpr unsigned basic_types = 7; ///< extended types are the basic ones plus this

std::expected<void, std::string> check_super(const sqfs_super_t& super, std::uint64_t size) {
    if (super.magic != SQFS_MAGIC) return std::unexpected("it is not a squashfs image");
    if (super.version_major != SQFS_VERSION_MAJOR || super.version_minor != SQFS_VERSION_MINOR)
        return std::unexpected("its squashfs version is not 4.0");
    if (super.block_log < 12 || super.block_log > 20 || super.block_size != 1U << super.block_log)
        return std::unexpected("its block size is invalid");
    if (super.bytes_used > size)
        return std::unexpected("it is truncated: it has " + std::to_string(size) + " of " +
                               std::to_string(super.bytes_used) + " bytes");
    if (super.inode_table_start < sizeof super || super.inode_table_start >= super.directory_table_start ||
        super.directory_table_start >= super.bytes_used || super.id_table_start >= super.bytes_used)
        return std::unexpected("its tables are at invalid positions");
    if (super.bytes_used - super.inode_table_start > largest_tables)
        return std::unexpected("its tables are larger than 1 GiB");
    return {};
}

std::string compressor_name(std::uint16_t id) {
    if (id < SQFS_COMP_MIN || id > SQFS_COMP_MAX) return "number " + std::to_string(id);
    return sqfs_compressor_name_from_id(static_cast<SQFS_COMPRESSOR>(id));
}

std::unexpected<Error> bad_image(const std::filesystem::path& path, std::string why) {
    return fail({.what = "cannot read the image",
                 .why = std::move(why),
                 .where = path.string(),
                 .hint = "Build the installation again with `containerize new --force`."});
}

struct ImageHeader {
    std::uint64_t file_size = 0;
    sqfs_super_t super{};
    std::unique_ptr<Decompressor> decompressor;
};

Result<ImageHeader> read_header(int file, const std::filesystem::path& path, std::uint64_t offset) {
    struct stat info {};
    if (fstat(file, &info) != 0) return fail_errno("cannot read the image", path.string());
    const auto size = static_cast<std::uint64_t>(info.st_size);
    sqfs_super_t super;
    const std::uint64_t left = offset < size ? size - offset : 0;
    if (left < sizeof super) return bad_image(path, "it is shorter than a squashfs header");
    const auto got = read_all_at(file, &super, sizeof super, static_cast<off_t>(offset));
    if (got != static_cast<ssize_t>(sizeof super))
        return fail_errno("cannot read the image", path.string(), got < 0 ? errno : EIO);
    if (auto good = check_super(super, left); !good) return bad_image(path, std::move(good.error()));
    auto decompressor = Decompressor::create(super);
    if (!decompressor)
        return fail(
            {.what = "cannot read the image",
             .why = "it is compressed with " + compressor_name(super.compression_id) +
                    ", which is not supported",
             .where = path.string(),
             .hint = "Create it again with zstd, gzip, xz or lz4: unsquashfs, then mksquashfs -comp zstd."});
    return ImageHeader{.file_size = size, .super = super, .decompressor = std::move(*decompressor)};
}

bool good_name(std::string_view name) {
    return name != "." && name != ".." && name.find('/') == std::string_view::npos &&
           name.find('\0') == std::string_view::npos;
}

std::expected<std::string, int> read_text(MetadataTable::Cursor& at, std::size_t size) {
    std::string text(size, '\0');
    TRY(at.read(std::as_writable_bytes(std::span(text))));
    return text;
}

struct XattrName {
    std::string text; ///< with its namespace
    bool value_elsewhere;
};

std::expected<XattrName, int> read_xattr_name(MetadataTable::Cursor& at) {
    const auto type = at.read<std::uint16_t>();
    const auto size = at.read<std::uint16_t>();
    if (!type || !size || (*type & 0xFFU) >= std::size(xattr_namespaces)) return std::unexpected(EIO);
    const auto name = TRY(read_text(at, *size));
    return XattrName{.text = std::string(xattr_namespaces[*type & 0xFFU]) + name,
                     .value_elsewhere = (*type & xattr_value_elsewhere) != 0};
}

} // namespace

const Directory::Entry* Directory::find(std::string_view wanted) const {
    const auto found =
        std::ranges::lower_bound(entries, wanted, {}, [this](const Entry& entry) { return name(entry); });
    return found == entries.end() || name(*found) != wanted ? nullptr : &*found;
}

Reader::Reader(Fd file, std::uint64_t offset, std::uint64_t file_size, const sqfs_super_t& super,
               std::unique_ptr<Decompressor> decompressor, std::size_t sharing, std::string name,
               const Instruments& instruments)
    : name_(std::move(name)), statistics_(instruments.statistics), recorder_(instruments.recorder),
      source_(std::move(file), offset, file_size, sharing, instruments), super_(super),
      decompressor_(std::move(decompressor)), blocks_(block_cache_bytes / sharing),
      directories_(directory_cache_bytes / sharing), file_maps_(file_map_cache_bytes / sharing) {}

Status Reader::check(int file, const std::filesystem::path& path, std::uint64_t offset) {
    TRY(read_header(file, path, offset));
    return {};
}

Result<std::unique_ptr<Reader>> Reader::open(Fd file, const std::filesystem::path& path, std::size_t sharing,
                                             std::uint64_t offset, const Instruments& instruments) {
    auto header = TRY(read_header(file.get(), path, offset));
    auto reader = std::unique_ptr<Reader>(new Reader(std::move(file), offset, header.file_size, header.super,
                                                     std::move(header.decompressor), sharing, path.string(),
                                                     instruments));
    // A failed read is another error than damaged tables.
    auto tables = reader->read_tables();
    if (!tables) return fail_errno("cannot read the image", path.string(), tables.error());
    if (auto done = reader->load_tables(*tables); !done) return bad_image(path, "its tables are damaged");
    return reader;
}

// The tables are at the image's end, in the order inodes, listings, fragments, export, ids, xattrs: one large
// read fetches them all, about a megabyte for 50,000 files.
std::expected<std::vector<std::byte>, int> Reader::read_tables() {
    std::vector<std::byte> tables(super_.bytes_used - super_.inode_table_start);
    TRY(source_.read(super_.inode_table_start, tables));
    return tables;
}

std::expected<void, int> Reader::load_tables(std::span<const std::byte> tables) {
    const std::uint64_t base = super_.inode_table_start;
    // The listings end at the first block of the next table, which that table's index names first.
    std::uint64_t listings_end = super_.bytes_used;
    for (const std::uint64_t index :
         {super_.fragment_table_start, super_.export_table_start, super_.id_table_start}) {
        if (index == no_table) continue;
        if (index < super_.directory_table_start || index > super_.bytes_used - sizeof(std::uint64_t))
            return std::unexpected(EIO);
        if (index == super_.fragment_table_start && super_.fragment_entry_count == 0) continue;
        std::uint64_t first = 0;
        std::memcpy(&first, tables.data() + (index - base), sizeof first);
        if (first < super_.directory_table_start) return std::unexpected(EIO);
        listings_end = std::min(listings_end, first);
    }
    const auto load = [&](std::unique_ptr<MetadataTable>& table, std::uint64_t from,
                          std::uint64_t to) -> std::expected<void, int> {
        const auto begin = tables.begin() + static_cast<std::ptrdiff_t>(from - base);
        table = TRY(MetadataTable::create(
            std::vector<std::byte>(begin, begin + static_cast<std::ptrdiff_t>(to - from)), *decompressor_));
        return {};
    };
    TRY(load(inodes_, base, super_.directory_table_start));
    TRY(load(listings_, super_.directory_table_start, listings_end));
    if (super_.fragment_table_start != no_table && super_.fragment_entry_count != 0)
        fragments_ = TRY(
            indexed_table<sqfs_fragment_t>(tables, super_.fragment_table_start, super_.fragment_entry_count));
    if (super_.xattr_id_table_start == no_table) return {};
    // The attributes are between the position that their table's header names and that table's first block.
    if (super_.xattr_id_table_start < base ||
        super_.xattr_id_table_start >
            super_.bytes_used - sizeof(sqfs_xattr_id_table_t) - sizeof(std::uint64_t))
        return std::unexpected(EIO);
    sqfs_xattr_id_table_t header;
    std::uint64_t first = 0;
    const auto* at = tables.data() + (super_.xattr_id_table_start - base);
    std::memcpy(&header, at, sizeof header);
    std::memcpy(&first, at + sizeof header, sizeof first);
    if (header.xattr_table_start < base || header.xattr_table_start > first || first > super_.bytes_used)
        return std::unexpected(EIO);
    TRY(load(xattrs_, header.xattr_table_start, first));
    xattr_sets_ = TRY(indexed_table<sqfs_xattr_id_t>(tables, super_.xattr_id_table_start + sizeof header,
                                                     header.xattr_ids));
    return {};
}

template<class Entry>
std::expected<std::vector<Entry>, int> Reader::indexed_table(std::span<const std::byte> tables,
                                                             std::uint64_t index, std::size_t count) {
    constexpr std::size_t entries_per_block = metadata_block_size / sizeof(Entry);
    const std::uint64_t base = super_.inode_table_start;
    const std::size_t index_start = index - base;
    const std::size_t blocks = (count + entries_per_block - 1) / entries_per_block;
    if (count > most_entries || blocks > (tables.size() - index_start) / sizeof(std::uint64_t))
        return std::unexpected(EIO);

    std::vector<Entry> table;
    MetadataBlock block;
    // The blocks must follow each other: one that the index names a thousand times would take a thousand
    // times its size in memory.
    std::uint64_t least = base;
    for (std::size_t i = 0; i < blocks; ++i) {
        std::uint64_t position = 0;
        std::memcpy(&position, tables.data() + index_start + i * sizeof position, sizeof position);
        if (position < least) return std::unexpected(EIO);
        auto end = position - base;
        TRY(read_block(tables, end, *decompressor_, block));
        least = base + end;
        const std::size_t entries = std::min(entries_per_block, count - table.size());
        if (entries * sizeof(Entry) > block.size) return std::unexpected(EIO);
        const std::size_t before = table.size();
        table.resize(before + entries);
        std::memcpy(table.data() + before, block.data.data(), entries * sizeof(Entry));
    }
    return table;
}

std::expected<std::string, int> Reader::xattr_value(MetadataTable::Cursor& at, bool elsewhere) const {
    const auto size = TRY(at.read<std::uint32_t>());
    if (elsewhere) {
        const auto place = TRY(at.read<std::uint64_t>());
        auto there = TRY(xattrs_->at(place >> 16U, place & 0xFFFFU));
        return xattr_value(there, false);
    }
    if (size > longest_xattr) return std::unexpected(EIO);
    return read_text(at, size);
}

std::expected<std::vector<Xattr>, int> Reader::xattrs(std::uint32_t set) const {
    std::vector<Xattr> found;
    if (set == Inode::no_xattrs) return found;
    if (set >= xattr_sets_.size()) return std::unexpected(EIO);
    const auto& place = xattr_sets_[set];
    if (place.count == 0) return found;
    auto at = TRY(xattrs_->at(place.xattr >> 16U, place.xattr & 0xFFFFU));
    std::size_t names = 0, values = 0;
    for (std::uint32_t i = 0; i < place.count; ++i) {
        auto name = TRY(read_xattr_name(at));
        auto value = TRY(xattr_value(at, name.value_elsewhere));
        names += name.text.size() + 1; // with the NUL that listxattr() returns
        values += value.size();
        if (names > most_xattr_names || values > most_xattr_values) return std::unexpected(EIO);
        found.push_back({.name = std::move(name.text), .value = std::move(value)});
    }
    return found;
}

// Goes once through the table, so that each attribute is read once, however many sets name it.
bool Reader::has_xattrs_other_than(std::string_view beginning) const {
    if (xattr_sets_.empty()) return false;
    auto at = xattrs_->at(0, 0);
    while (at && !at->at_end()) {
        const auto name = read_xattr_name(*at);
        if (!name || !name->text.starts_with(beginning)) return true;
        const auto size = at->read<std::uint32_t>();
        if (!size || !at->skip(*size)) return true;
    }
    return false;
}

// Reads the fixed part of an inode. The returned cursor is at what follows: block sizes, or a link's target.
std::expected<MetadataTable::Cursor, int> Reader::inode_at(Reference reference, Inode& inode) const {
    auto cursor = TRY(inodes_->at(reference >> 16U, reference & 0xFFFFU));
    const auto head = TRY(cursor.read<sqfs_inode_t>());
    if (head.type < SQFS_INODE_DIR || head.type > SQFS_INODE_EXT_SOCKET) return std::unexpected(EIO);
    const unsigned type = head.type > basic_types ? head.type - basic_types : head.type;
    inode.mode = type_bits[type] | (head.mode & 07777U);
    inode.number = head.inode_number;
    inode.mtime = head.mod_time;

    const auto take_directory = [&inode](const auto& directory) {
        inode.nlink = directory.nlink;
        inode.size = directory.size;
        inode.listing_block = directory.start_block;
        inode.listing_offset = directory.offset;
        inode.listing_size =
            directory.size < listing_extra ? 0 : static_cast<std::uint32_t>(directory.size) - listing_extra;
    };
    switch (head.type) {
    case SQFS_INODE_DIR: {
        const auto directory = TRY(cursor.read<sqfs_inode_dir_t>());
        take_directory(directory);
        return cursor;
    }
    case SQFS_INODE_EXT_DIR: {
        const auto directory = TRY(cursor.read<sqfs_inode_dir_ext_t>());
        take_directory(directory);
        inode.xattrs = directory.xattr_idx;
        return cursor;
    }
    case SQFS_INODE_FILE: {
        const auto file = TRY(cursor.read<sqfs_inode_file_t>());
        inode.size = file.file_size;
        inode.data_start = file.blocks_start;
        inode.fragment = file.fragment_index;
        inode.fragment_offset = file.fragment_offset;
        return cursor;
    }
    case SQFS_INODE_EXT_FILE: {
        const auto file = TRY(cursor.read<sqfs_inode_file_ext_t>());
        inode.nlink = file.nlink;
        inode.xattrs = file.xattr_idx;
        inode.size = file.file_size;
        inode.data_start = file.blocks_start;
        inode.fragment = file.fragment_idx;
        inode.fragment_offset = file.fragment_offset;
        return cursor;
    }
    case SQFS_INODE_SLINK:
    case SQFS_INODE_EXT_SLINK: {
        const auto link = TRY(cursor.read<sqfs_inode_slink_t>());
        inode.nlink = link.nlink;
        inode.size = link.target_size;
        return cursor;
    }
    case SQFS_INODE_BDEV:
    case SQFS_INODE_CDEV:
    case SQFS_INODE_EXT_BDEV:
    case SQFS_INODE_EXT_CDEV: {
        const auto device = TRY(cursor.read<sqfs_inode_dev_t>());
        inode.nlink = device.nlink;
        inode.rdev = device.devno; // encoded like the kernel's new_encode_dev(), as FUSE expects it
        return cursor;
    }
    default: {
        const auto other = TRY(cursor.read<sqfs_inode_ipc_t>());
        inode.nlink = other.nlink;
        return cursor;
    }
    }
}

std::expected<Inode, int> Reader::inode(Reference reference) const {
    Inode inode;
    TRY(inode_at(reference, inode));
    return inode;
}

std::expected<Directory, int> Reader::parse_directory(const Inode& inode) const {
    Directory directory;
    if (inode.listing_size == 0) return directory;
    if (inode.listing_size > largest_listing) return std::unexpected(EIO);
    auto cursor = TRY(listings_->at(inode.listing_block, inode.listing_offset));
    for (std::uint64_t done = 0; done < inode.listing_size;) {
        const auto header = TRY(cursor.read<sqfs_dir_header_t>());
        if (header.count >= SQFS_MAX_DIR_ENT) return std::unexpected(EIO);
        done += sizeof header;
        for (std::uint32_t i = 0; i <= header.count; ++i) {
            struct { // sqfs_dir_entry_t ends in a flexible array, which cannot be a value
                std::uint16_t offset;
                std::int16_t inode_diff;
                std::uint16_t type;
                std::uint16_t size;
            } fixed{};
            TRY(cursor.read(std::as_writable_bytes(std::span(&fixed, 1))));
            if (fixed.type == 0 || fixed.type > basic_types) return std::unexpected(EIO);
            const std::size_t size = std::size_t{fixed.size} + 1;
            if (size > longest_name) return std::unexpected(EIO);
            std::array<char, longest_name> buffer;
            TRY(cursor.read(std::as_writable_bytes(std::span(buffer).first(size))));
            const std::string_view name(buffer.data(), size);
            if (!good_name(name)) return std::unexpected(EIO);
            directory.entries.push_back({.inode = std::uint64_t{header.start_block} << 16U | fixed.offset,
                                         .name_start = static_cast<std::uint32_t>(directory.names.size()),
                                         .name_size = static_cast<std::uint16_t>(size),
                                         .type = directory_types[fixed.type]});
            directory.names.append(name);
            done += sizeof fixed + size;
        }
    }
    const auto by_name = [&](const Directory::Entry& entry) { return directory.name(entry); };
    if (!std::ranges::is_sorted(directory.entries, {}, by_name))
        std::ranges::sort(directory.entries, {}, by_name);
    // It would be chance which of two is found, and unpacking would write through the one into the other.
    if (std::ranges::adjacent_find(directory.entries, {}, by_name) != directory.entries.end())
        return std::unexpected(EIO);
    return directory;
}

LoadingCache<Directory>::Loaded Reader::directory(Reference reference) {
    return directories_.get(reference, [&]() -> LoadingCache<Directory>::Loaded {
        auto found = TRY(inode(reference));
        if (!S_ISDIR(found.mode)) return std::unexpected(ENOTDIR);
        auto parsed = TRY(parse_directory(found));
        return std::make_shared<const Directory>(std::move(parsed));
    });
}

std::expected<Reference, int> Reader::lookup(Reference parent, std::string_view name) {
    const auto listing = TRY(directory(parent));
    const auto* found = listing->find(name);
    if (found == nullptr) return std::unexpected(ENOENT);
    return found->inode;
}

std::expected<std::string, int> Reader::read_link(Reference reference) const {
    Inode inode;
    auto cursor = TRY(inode_at(reference, inode));
    if (!S_ISLNK(inode.mode)) return std::unexpected(EINVAL);
    if (inode.size == 0 || inode.size >= PATH_MAX) return std::unexpected(EIO);
    auto target = TRY(read_text(cursor, inode.size));
    if (target.find('\0') != std::string::npos) return std::unexpected(EIO);
    return target;
}

std::uint64_t Reader::block_count(const Inode& inode) const {
    const std::uint64_t whole = inode.size >> super_.block_log;
    const bool tail = (inode.size & (super_.block_size - 1)) != 0;
    return tail && inode.fragment == Inode::no_fragment ? whole + 1 : whole;
}

LoadingCache<Reader::FileMap>::Loaded Reader::file_map(Reference reference) {
    return file_maps_.get(reference, [&]() -> LoadingCache<FileMap>::Loaded {
        Inode inode;
        auto cursor = TRY(inode_at(reference, inode));
        const std::uint64_t count = block_count(inode);
        if (count > most_blocks_of_file) return std::unexpected(EIO);
        auto map = std::make_shared<FileMap>();
        std::uint64_t start = inode.data_start;
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto size = TRY(cursor.read<std::uint32_t>());
            map->starts.push_back(start);
            map->sizes.push_back(size);
            start += size & stored_size_mask;
        }
        return map;
    });
}

LoadingCache<Reader::Block>::Loaded Reader::decompressed(const ProfileBlock& place) {
    // Size 0 means a hole, which is handled elsewhere for files, and which a fragment cannot be.
    if (place.stored() == 0 || place.stored() > super_.block_size) return std::unexpected(EIO);
    auto* prefetch = prefetch_.load(std::memory_order_acquire);
    auto ahead = prefetch == nullptr ? std::nullopt : prefetch->range(part_, place.start, place.stored());
    auto range = TRY(ahead ? std::move(*ahead) : source_.range(place.start, place.stored()));
    auto block = std::make_shared<Block>();
    block->size_field = place.size_field;
    if ((place.size_field & block_stored_uncompressed) != 0) {
        block->data = std::make_unique_for_overwrite<std::byte[]>(place.stored());
        std::ranges::copy(range.bytes, block->data.get());
        block->size = place.stored();
    } else {
        block->data = std::make_unique_for_overwrite<std::byte[]>(super_.block_size);
        block->size = TRY(decompressor_->decompress(range.bytes, {block->data.get(), super_.block_size}));
    }
    return block;
}

LoadingCache<Reader::Block>::Loaded Reader::load(const ProfileBlock& place, Statistics::Counter* loads) {
    auto loaded = blocks_.get(place.start, [&] {
        if (loads != nullptr) loads->fetch_add(1, std::memory_order_relaxed);
        return decompressed(place);
    });
    if (auto* prefetch = prefetch_.load(std::memory_order_acquire)) prefetch->loaded(part_, place);
    return loaded;
}

LoadingCache<Reader::Block>::Loaded Reader::block(const ProfileBlock& place) {
    statistics_->blocks_wanted.fetch_add(1, std::memory_order_relaxed);
    if (recorder_) recorder_->note(name_, place);
    if (auto* prefetch = prefetch_.load(std::memory_order_acquire)) prefetch->wanted(part_, place);
    auto loaded = load(place, &statistics_->blocks_loaded);
    // A wrong profile may have loaded something else from this position.
    while (loaded && (*loaded)->size_field != place.size_field) {
        blocks_.drop(place.start, *loaded);
        loaded = load(place, &statistics_->blocks_loaded);
    }
    return loaded;
}

std::vector<ProfileBlock> Reader::possible(const std::vector<ProfileBlock>& blocks) const {
    std::vector<ProfileBlock> found;
    for (const auto& block : blocks)
        if (block.start >= sizeof super_ && block.end() <= super_.inode_table_start &&
            block.stored() <= super_.block_size)
            found.push_back(block);
    return found;
}

Prefetch::Part Reader::part(std::vector<ProfileBlock> blocks) {
    return {.source = &source_,
            .blocks = std::move(blocks),
            .block_size = super_.block_size,
            .load = [this](const ProfileBlock& block) {
                [[maybe_unused]] const auto loaded = load(block, nullptr);
            }};
}

void Reader::use(Prefetch& prefetch, std::size_t number) {
    part_ = number;
    prefetch_.store(&prefetch, std::memory_order_release);
}

std::expected<std::vector<ProfileBlock>, int> Reader::blocks_of(Reference reference) {
    const auto found = TRY(inode(reference));
    if (!S_ISREG(found.mode)) return std::unexpected(EINVAL);
    const auto map = TRY(file_map(reference));
    std::vector<ProfileBlock> blocks;
    for (std::size_t i = 0; i < map->starts.size(); ++i)
        if (const ProfileBlock block{.start = map->starts[i], .size_field = map->sizes[i]};
            block.stored() != 0)
            blocks.push_back(block);
    if (found.fragment == Inode::no_fragment) return blocks;
    if (found.fragment >= fragments_.size()) return std::unexpected(EIO);
    const auto& fragment = fragments_[found.fragment];
    blocks.push_back({.start = fragment.start_offset, .size_field = fragment.size});
    return blocks;
}

std::uint64_t StoredFile::stored() const {
    std::uint64_t bytes = 0;
    for (const auto field : blocks)
        bytes += field & stored_size_mask;
    return bytes;
}

std::expected<ProfileBlock, int> Reader::fragment(std::uint32_t number) const {
    if (number >= fragments_.size()) return std::unexpected(EIO);
    const ProfileBlock block{.start = fragments_[number].start_offset, .size_field = fragments_[number].size};
    if (block.stored() == 0 || block.stored() > super_.block_size || block.start < sizeof super_ ||
        block.start > end_of_blocks() || block.end() > end_of_blocks())
        return std::unexpected(EIO);
    return block;
}

std::expected<StoredFile, int> Reader::stored_file(Reference reference) const {
    Inode inode;
    auto cursor = TRY(inode_at(reference, inode));
    if (!S_ISREG(inode.mode)) return std::unexpected(EINVAL);
    const std::uint64_t count = block_count(inode);
    if (count > most_blocks_of_file) return std::unexpected(EIO);
    StoredFile file{.size = inode.size, .start = inode.data_start, .blocks = {}};
    std::uint64_t end = inode.data_start;
    for (std::uint64_t i = 0; i < count; ++i) {
        file.blocks.push_back(TRY(cursor.read<std::uint32_t>()));
        const auto stored = file.blocks.back() & stored_size_mask;
        if (stored > super_.block_size) return std::unexpected(EIO);
        end += stored;
    }
    if (end != inode.data_start && (inode.data_start < sizeof super_ || end > end_of_blocks()))
        return std::unexpected(EIO);
    // An inode may name a fragment in which nothing of the file is.
    const bool has_end = (inode.size & (super_.block_size - 1)) != 0;
    if (!has_end || inode.fragment == Inode::no_fragment) return file;
    if (inode.fragment >= fragments_.size()) return std::unexpected(EIO);
    file.fragment = inode.fragment;
    file.fragment_offset = inode.fragment_offset;
    return file;
}

std::expected<void, int> Reader::read(Reference reference, std::uint64_t offset, std::size_t size,
                                      std::vector<Slice>& out) {
    const auto found = TRY(inode(reference));
    if (!S_ISREG(found.mode)) return std::unexpected(S_ISDIR(found.mode) ? EISDIR : EINVAL);
    if (offset >= found.size) return {};
    size = std::min<std::uint64_t>(size, found.size - offset);

    const std::uint64_t blocks = block_count(found);
    LoadingCache<FileMap>::Pointer map;
    while (size > 0) {
        const std::uint64_t index = offset >> super_.block_log;
        const std::size_t within = offset & (super_.block_size - 1);
        // What the block must hold: a whole block, or the rest of the file.
        const std::size_t expected =
            std::min<std::uint64_t>(super_.block_size, found.size - (offset - within));
        const std::size_t count = std::min(size, expected - within);
        if (index < blocks) {
            if (!map) map = TRY(file_map(reference));
            if (index >= map->starts.size()) return std::unexpected(EIO);
            if ((map->sizes[index] & stored_size_mask) == 0) {
                out.push_back({.pin = nullptr, .bytes = std::span(zeros).subspan(0, count)});
            } else {
                auto loaded = TRY(block({.start = map->starts[index], .size_field = map->sizes[index]}));
                if (loaded->size < within + count) return std::unexpected(EIO);
                out.push_back({.pin = loaded, .bytes = {loaded->data.get() + within, count}});
            }
        } else {
            if (found.fragment >= fragments_.size()) return std::unexpected(EIO);
            const auto& fragment = fragments_[found.fragment];
            auto loaded = TRY(block({.start = fragment.start_offset, .size_field = fragment.size}));
            const std::uint64_t position = std::uint64_t{found.fragment_offset} + within;
            if (position + count > loaded->size) return std::unexpected(EIO);
            out.push_back({.pin = loaded, .bytes = {loaded->data.get() + position, count}});
        }
        offset += count;
        size -= count;
    }
    return {};
}

} // namespace containerize::image

#include "image/writer.h"

#include "core/filesystem.h"
#include "image/metadata.h"
#include "image/squashfs_objects.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include <fcntl.h>
#include <sqfs/block.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::image {

namespace {

constexpr std::uint32_t no_xattrs = 0xFFFFFFFF;
constexpr std::uint32_t no_fragment = 0xFFFFFFFF;
/// Images are padded to a multiple of this, so that they can be mounted from a block device.
constexpr std::uint64_t padding = 4096;

/// What all hard links of a file share.
struct EntryInode {
    Attributes attributes;
    mode_t type = S_IFDIR;
    std::string target;      ///< of a symbolic link
    std::uint32_t links = 1; ///< names of a file
    std::uint32_t xattrs = no_xattrs;
    std::uint32_t number = 0;            ///< 0: not numbered yet
    std::uint64_t reference = 0;         ///< position in the inode table
    bool written = false;                ///< to the table that is being written
    sqfs_inode_generic_t* raw = nullptr; ///< owned; libsquashfs completes a file's while it writes the blocks

    EntryInode() = default;
    EntryInode(const EntryInode&) = delete;
    EntryInode& operator=(const EntryInode&) = delete;
    ~EntryInode() { sqfs_free(raw); }
};

struct Node {
    std::shared_ptr<EntryInode> inode = std::make_shared<EntryInode>();
    std::map<std::string, std::unique_ptr<Node>, std::less<>> children; ///< in the format's order

    [[nodiscard]] bool is_directory() const { return inode->type == S_IFDIR; }
};

/// Null if there is no memory. Uses calloc(), because libsquashfs frees inodes by free().
sqfs_inode_generic_t* make_symlink_inode(const std::string& target) {
    auto* inode =
        static_cast<sqfs_inode_generic_t*>(std::calloc(1, sizeof(sqfs_inode_generic_t) + target.size() + 1));
    if (inode == nullptr) return nullptr;
    inode->base.type = SQFS_INODE_SLINK;
    inode->data.slink.nlink = 1;
    inode->data.slink.target_size = static_cast<sqfs_u32>(target.size());
    std::memcpy(inode->extra, target.c_str(), target.size() + 1);
    return inode;
}

/// A file whose content is already in the image. Null if there is no memory.
sqfs_inode_generic_t* make_file_inode(const StoredFile& file, std::uint64_t start, std::uint32_t fragment,
                                      std::uint32_t block_size) {
    const auto bytes = file.blocks.size() * sizeof(sqfs_u32);
    auto* inode = static_cast<sqfs_inode_generic_t*>(std::calloc(1, sizeof(sqfs_inode_generic_t) + bytes));
    if (inode == nullptr) return nullptr;
    inode->base.type = SQFS_INODE_FILE;
    inode->payload_bytes_available = inode->payload_bytes_used = static_cast<sqfs_u32>(bytes);
    if (bytes != 0) std::memcpy(inode->extra, file.blocks.data(), bytes);
    sqfs_inode_set_file_size(inode, file.size); // these three make an extended inode where one is needed
    sqfs_inode_set_file_block_start(inode, file.blocks.empty() ? 0 : start);
    sqfs_inode_set_frag_location(inode, fragment, file.fragment_offset);
    if (const auto holes = std::ranges::count(file.blocks, 0U); holes != 0) {
        sqfs_inode_make_extended(inode);
        inode->data.file_ext.sparse = std::min(file.size, static_cast<std::uint64_t>(holes) * block_size);
    }
    return inode;
}

/// In the order of positions; neighbours become one. Several files may have the same blocks.
std::vector<CopiedBlocks::Range> joined(std::vector<CopiedBlocks::Range> ranges) {
    std::ranges::sort(ranges, {}, &CopiedBlocks::Range::from);
    std::vector<CopiedBlocks::Range> result;
    for (const auto& range : ranges) {
        if (result.empty() || range.from > result.back().end()) {
            result.push_back(range);
            continue;
        }
        auto& last = result.back();
        last.size = std::max(last.size, range.end() - last.from);
    }
    return result;
}

/// A whiteout: the device 0:0, which no driver has.
sqfs_inode_generic_t* make_whiteout_inode() {
    auto* inode = static_cast<sqfs_inode_generic_t*>(std::calloc(1, sizeof(sqfs_inode_generic_t)));
    if (inode == nullptr) return nullptr;
    inode->base.type = SQFS_INODE_CDEV;
    inode->data.dev.nlink = 1;
    return inode;
}

} // namespace

struct Writer::State {
    std::filesystem::path path;
    WriterOptions options;
    bool finished = false;
    // Members use those declared before them, and are destroyed before them.
    std::unique_ptr<OutputFile> file;
    sqfs_super_t super{};
    SquashfsObject<sqfs_compressor_t> compressor, decompressor;
    SquashfsObject<sqfs_block_writer_t> blocks;
    SquashfsObject<sqfs_frag_table_t> fragments;
    SquashfsObject<sqfs_id_table_t> ids;
    SquashfsObject<sqfs_xattr_writer_t> xattrs;
    Node root;
    SquashfsObject<sqfs_block_processor_t> processor;
    SquashfsObject<sqfs_meta_writer_t> inode_table, listing_table;
    SquashfsObject<sqfs_dir_writer_t> listings;

    bool in_file = false;
    bool has_xattrs = false;
    std::optional<std::uint64_t> data_end; ///< after a checkpoint: where the tables start
    /// Inodes of what was removed, which libsquashfs may still fill in.
    std::vector<std::shared_ptr<EntryInode>> removed;
    std::uint32_t next_number = 1;
    std::uint32_t newest = 0;
    WriteStats stats;

    ~State() {
        // libsquashfs does not free what its threads are still working on: wait for them to finish.
        if (!finished && processor) sqfs_block_processor_sync(processor.get());
        if (!finished && file) unlink(path.c_str());
    }

    std::unexpected<Error> failed(int code, std::string_view what = "cannot write the image") const {
        if (file && file->error_number() != 0)
            return fail_errno(std::string(what), path.string(), file->error_number());
        return fail({.what = std::string(what), .why = squashfs_error(code), .where = path.string()});
    }
    Status check(int code) const { return code == 0 ? Status() : failed(code); }
    std::unexpected<Error> misuse(std::string_view entry, std::string why) const {
        return fail({.what = "cannot add '" + std::string(entry) + "' to the image",
                     .why = std::move(why),
                     .where = path.string()});
    }

    Status set_up();
    Status set_up_compressors();
    Status settle();
    Node* find(std::string_view entry);
    Result<Node*> add(std::string_view entry, mode_t type, const Attributes& attributes);
    void forget(Node& node);
    Result<std::uint32_t> store_xattrs(const Attributes& attributes);

    Status drop_tables();
    Status keep_used_fragments();
    Status renumber_fragments(Node& directory, sqfs_frag_table_t& kept,
                              std::map<std::uint32_t, std::uint32_t>& numbers);
    void unnumber(Node& directory);
    void number(Node& directory);
    Status write_inode(EntryInode& inode);
    Status write_file_inodes(Node& directory);
    Status write_directories(Node& directory, const std::string& location, std::uint32_t parent);
    Status write_tables();
};

Status Writer::State::set_up_compressors() {
    const auto& [chosen, level] = options.compression;
    if (chosen == Compressor::none) {
        compressor.reset(make_storing_compressor());
        if (!compressor) return failed(SQFS_ERROR_ALLOC);
        return {};
    }
    sqfs_compressor_config_t config;
    TRY(check(
        sqfs_compressor_config_init(&config, static_cast<SQFS_COMPRESSOR>(chosen), options.block_size, 0)));
    if (level != 0) config.level = static_cast<sqfs_u32>(level);
    sqfs_compressor_t* made = nullptr;
    TRY(check(sqfs_compressor_create(&config, &made)));
    compressor.reset(make_shrinking_compressor(made));
    if (!compressor) return failed(SQFS_ERROR_ALLOC);
    config.flags |= SQFS_COMP_FLAG_UNCOMPRESS;
    TRY(check(sqfs_compressor_create(&config, &made)));
    decompressor.reset(made);
    return {};
}

Status Writer::State::set_up() {
    TRY(set_up_compressors());
    sqfs_compressor_config_t config;
    compressor->get_configuration(compressor.get(), &config);
    TRY(check(sqfs_super_init(&super, options.block_size, 0, static_cast<SQFS_COMPRESSOR>(config.id))));
    // Reserves space for the superblock, which is written last.
    TRY(check(sqfs_super_write(&super, file.get())));
    const int written = compressor->write_options(compressor.get(), file.get());
    if (written < 0) return failed(written);
    if (written > 0) super.flags |= SQFS_FLAG_COMPRESSOR_OPTIONS;

    blocks.reset(sqfs_block_writer_create(file.get(), padding, 0));
    fragments.reset(sqfs_frag_table_create(0));
    ids.reset(sqfs_id_table_create(0));
    xattrs.reset(sqfs_xattr_writer_create(0));
    if (!blocks || !fragments || !ids || !xattrs) return failed(SQFS_ERROR_ALLOC);
    sqfs_block_processor_desc_t description{};
    description.size = sizeof description;
    description.max_block_size = options.block_size;
    description.num_workers = std::max(1U, options.jobs);
    const std::uint64_t in_flight = options.memory / options.block_size;
    description.max_backlog =
        static_cast<sqfs_u32>(std::clamp<std::uint64_t>(in_flight, description.num_workers * 2ULL, 4096));
    description.cmp = compressor.get();
    description.wr = blocks.get();
    description.tbl = fragments.get();
    // With these two, libsquashfs compares fragments of equal 32-bit hashes before it shares one. Without a
    // decompressor it compares nothing; for uncompressed images it gets the storing compressor, and never
    // calls it.
    description.file = file.get();
    description.uncmp = decompressor ? decompressor.get() : compressor.get();
    sqfs_block_processor_t* made = nullptr;
    TRY(check(sqfs_block_processor_create_ex(&description, &made)));
    processor.reset(made);
    root.inode->attributes.mode = options.directory_mode;
    return {};
}

Node* Writer::State::find(std::string_view entry) {
    Node* node = &root;
    for (std::string_view rest = entry; node != nullptr && !rest.empty();) {
        const auto slash = rest.find('/');
        const auto found = node->children.find(rest.substr(0, slash));
        node = found == node->children.end() ? nullptr : found->second.get();
        rest = slash == rest.npos ? std::string_view() : rest.substr(slash + 1);
    }
    return node;
}

Result<Node*> Writer::State::add(std::string_view entry, mode_t type, const Attributes& attributes) {
    if (in_file) return misuse(entry, "another file is still being written");
    // No system call could name it, and writing the tables recurses once for each level.
    if (entry.size() >= PATH_MAX) return misuse(entry, "its path is too long");
    TRY(drop_tables());
    auto xattr = TRY(store_xattrs(attributes));
    newest = std::max(newest, attributes.mtime);
    Node* node = &root;
    std::string_view rest = entry;
    while (!rest.empty()) {
        const auto slash = rest.find('/');
        const auto name = rest.substr(0, slash);
        if (name.empty() || name == "." || name == ".." || name.size() > 255 || name.find('\0') != name.npos)
            return misuse(entry, "it is not a valid path in an image");
        const bool last = slash == rest.npos;
        auto found = node->children.find(name);
        if (found == node->children.end()) {
            auto made = std::make_unique<Node>();
            made->inode->attributes.mode = options.directory_mode; // unless the directory itself is added
            found = node->children.emplace(std::string(name), std::move(made)).first;
            if (last) found->second->inode->type = 0;
        }
        node = found->second.get();
        if (!last && !node->is_directory()) return misuse(entry, "a part of its path is not a directory");
        rest = last ? std::string_view() : rest.substr(slash + 1);
    }
    // A directory may be added after what is in it.
    EntryInode& inode = *node->inode;
    if (inode.type != 0 && (!node->is_directory() || type != S_IFDIR))
        return misuse(entry, "it already exists");
    inode.type = type;
    inode.attributes = attributes;
    inode.attributes.mode &= 07777U;
    if (options.source_date_epoch)
        inode.attributes.mtime = std::min(attributes.mtime, *options.source_date_epoch);
    inode.xattrs = xattr;
    return node;
}

// Takes `node` and what is below it out of the counts; the inodes stay until libsquashfs is done with them.
void Writer::State::forget(Node& node) {
    for (auto& [name, child] : node.children)
        forget(*child);
    if (node.inode->type == S_IFREG) {
        sqfs_u64 size = 0;
        if (--node.inode->links > 0)
            --stats.links;
        else if (--stats.files;
                 node.inode->raw != nullptr && sqfs_inode_get_file_size(node.inode->raw, &size) == 0)
            stats.input_bytes -= std::min<std::uint64_t>(size, stats.input_bytes);
    } else if (node.inode->type == S_IFLNK) {
        --stats.links;
    }
    removed.push_back(std::move(node.inode));
}

Result<std::uint32_t> Writer::State::store_xattrs(const Attributes& attributes) {
    if (attributes.xattrs.empty()) return no_xattrs;
    has_xattrs = true;
    std::uint32_t index = no_xattrs;
    int code = sqfs_xattr_writer_begin(xattrs.get(), 0);
    for (const auto& [name, value] : attributes.xattrs)
        if (code == 0) code = sqfs_xattr_writer_add(xattrs.get(), name.c_str(), value.data(), value.size());
    if (code == 0) code = sqfs_xattr_writer_end(xattrs.get(), &index);
    if (code != 0) return failed(code, "cannot store extended attributes in the image");
    return index;
}

Result<Writer> Writer::create(const std::filesystem::path& image, const WriterOptions& options) {
    auto state = std::make_unique<State>();
    state->path = image;
    state->options = options;
    Fd fd(open(image.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode_of_new_files));
    if (!fd) return fail_errno("cannot create the image", image.string());
    state->file = std::make_unique<OutputFile>(std::move(fd));
    TRY(state->set_up());
    return Writer(std::move(state));
}

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Status Writer::add_directory(std::string_view path, const Attributes& attributes) {
    TRY(state_->add(path, S_IFDIR, attributes));
    return {};
}

Status Writer::add_symlink(std::string_view path, std::string_view target, const Attributes& attributes) {
    if (target.empty() || target.size() > 65535 || target.find('\0') != std::string_view::npos)
        return state_->misuse(path, "its link target is invalid");
    auto node = TRY(state_->add(path, S_IFLNK, attributes));
    node->inode->target = target;
    ++state_->stats.links;
    return {};
}

Status Writer::add_hardlink(std::string_view path, std::string_view existing) {
    const Node* original = state_->find(existing);
    if (original == nullptr || original->inode->type != S_IFREG)
        return state_->misuse(path, "'" + std::string(existing) + "' is not a file in the image");
    auto inode = original->inode;
    auto node = TRY(state_->add(path, S_IFREG, {}));
    ++inode->links;
    node->inode = std::move(inode);
    ++state_->stats.links;
    return {};
}

Status Writer::add_whiteout(std::string_view path) {
    TRY(state_->add(path, S_IFCHR, {.mode = 0}));
    return {};
}

bool Writer::contains(std::string_view path) const {
    return state_->find(path) != nullptr;
}

const Attributes* Writer::directory(std::string_view path) const {
    const Node* node = state_->find(path);
    return node != nullptr && node->is_directory() ? &node->inode->attributes : nullptr;
}

void Writer::remove(std::string_view path) {
    Node* node = state_->find(path);
    if (node == nullptr || node == &state_->root) return;
    const auto slash = path.rfind('/');
    Node* parent = slash == path.npos ? &state_->root : state_->find(path.substr(0, slash));
    state_->forget(*node);
    parent->children.erase(parent->children.find(path.substr(slash == path.npos ? 0 : slash + 1)));
}

Status Writer::begin_file(std::string_view path, const Attributes& attributes) {
    auto node = TRY(state_->add(path, S_IFREG, attributes));
    TRY(state_->check(
        sqfs_block_processor_begin_file(state_->processor.get(), &node->inode->raw, nullptr, 0)));
    state_->in_file = true;
    ++state_->stats.files;
    return {};
}

Status Writer::append(std::span<const std::byte> data) {
    if (data.empty()) return {}; // libsquashfs 1.2.0 crashes on an empty append at the start of a file
    TRY(state_->check(sqfs_block_processor_append(state_->processor.get(), data.data(), data.size())));
    state_->stats.input_bytes += data.size();
    return {};
}

Status Writer::end_file() {
    TRY(state_->check(sqfs_block_processor_end_file(state_->processor.get())));
    state_->in_file = false;
    return {};
}

bool Writer::can_copy(const Reader& other) const {
    return other.compressor() == state_->super.compression_id &&
           other.block_size() == state_->options.block_size;
}

Status Writer::copy_blocks(const Reader& other, std::span<const StoredFile> files, CopiedBlocks& copied) {
    auto& state = *state_;
    if (!can_copy(other)) return state.misuse(other.name(), "it has another compressor or block size");
    // Nothing may be written between the blocks of a file.
    TRY(state.check(sqfs_block_processor_sync(state.processor.get())));
    TRY(state.drop_tables());
    std::vector<CopiedBlocks::Range> wanted;
    std::set<std::uint32_t> fragments;
    for (const auto& file : files) {
        const auto size = file.stored();
        if (size != 0 && copied.find(file.start, size) == nullptr)
            wanted.push_back({.from = file.start, .size = size});
        if (file.fragment != no_fragment && !copied.fragments.contains(file.fragment))
            fragments.insert(file.fragment);
    }
    for (const auto number : fragments) {
        const auto block = other.fragment(number);
        if (!block) return state.misuse(other.name(), "it is damaged");
        if (copied.find(block->start, block->stored()) == nullptr)
            wanted.push_back({.from = block->start, .size = block->stored()});
    }
    const auto start = other.source().start();
    for (auto& range : joined(std::move(wanted))) {
        range.to = state.file->size();
        TRY(state.check(
            state.file->append_range(other.source().file(), start + range.from, start + range.end())));
        copied.add(range);
    }
    for (const auto number : fragments) {
        const auto block = *other.fragment(number);
        const auto* range = copied.find(block.start, block.stored());
        sqfs_u32 here = 0;
        TRY(state.check(sqfs_frag_table_append(state.fragments.get(), range->position(block.start),
                                               block.size_field, &here)));
        copied.fragments.emplace(number, here);
    }
    return {};
}

const CopiedBlocks::Range* CopiedBlocks::find(std::uint64_t from, std::uint64_t size) const {
    // None contains another, so of those that start before, the last one ends last.
    const auto after = std::ranges::upper_bound(ranges, from, {}, &Range::from);
    if (after == ranges.begin() || std::prev(after)->end() < from + size) return nullptr;
    return &*std::prev(after);
}

void CopiedBlocks::add(const Range& range) {
    const auto place = std::ranges::lower_bound(ranges, range.from, {}, &Range::from);
    const auto contained = [&](const Range& old) { return old.end() <= range.end(); };
    const auto end = std::find_if_not(place, ranges.end(), contained);
    ranges.insert(ranges.erase(place, end), range);
}

Status Writer::link_file(std::string_view path, const Attributes& attributes, const StoredFile& file,
                         const CopiedBlocks& blocks) {
    auto& state = *state_;
    const auto fragment = blocks.fragments.find(file.fragment);
    if (file.fragment != no_fragment && fragment == blocks.fragments.end())
        return state.misuse(path, "its content was not copied");
    const auto stored = file.stored();
    const auto* range = blocks.find(file.start, stored);
    if (stored != 0 && range == nullptr) return state.misuse(path, "its content was not copied");
    auto node = TRY(state.add(path, S_IFREG, attributes));
    node->inode->raw = make_file_inode(file, stored == 0 ? 0 : range->position(file.start),
                                       file.fragment == no_fragment ? no_fragment : fragment->second,
                                       state.options.block_size);
    if (node->inode->raw == nullptr) return state.failed(SQFS_ERROR_ALLOC);
    ++state.stats.files;
    state.stats.input_bytes += file.size;
    return {};
}

// Removes the tables of a checkpoint from the file's end, so that data continues where it ended.
Status Writer::State::drop_tables() {
    if (!data_end) return {};
    const auto end = *std::exchange(data_end, std::nullopt);
    return check(file->truncate(file.get(), end));
}

Status Writer::State::renumber_fragments(Node& directory, sqfs_frag_table_t& kept,
                                         std::map<std::uint32_t, std::uint32_t>& numbers) {
    for (auto& [name, child] : directory.children) {
        if (child->is_directory()) {
            TRY(renumber_fragments(*child, kept, numbers));
            continue;
        }
        EntryInode& inode = *child->inode;
        if (inode.type != S_IFREG || inode.written) continue;
        inode.written = true; // renumbered already, when another name of the file comes by
        std::uint32_t old = 0;
        std::uint32_t offset = 0;
        TRY(check(sqfs_inode_get_frag_location(inode.raw, &old, &offset)));
        if (old == no_fragment) continue;
        const auto [number, is_new] = numbers.emplace(old, static_cast<std::uint32_t>(numbers.size()));
        if (is_new) {
            sqfs_fragment_t fragment;
            TRY(check(sqfs_frag_table_lookup(fragments.get(), old, &fragment)));
            TRY(check(sqfs_frag_table_append(&kept, fragment.start_offset, fragment.size, nullptr)));
        }
        TRY(check(sqfs_inode_set_frag_location(inode.raw, number->second, offset)));
    }
    return {};
}

// Drops the fragments of what was removed: an image with more fragments than inodes counts as damaged.
Status Writer::State::keep_used_fragments() {
    SquashfsObject<sqfs_frag_table_t> kept(sqfs_frag_table_create(0));
    if (!kept) return failed(SQFS_ERROR_ALLOC);
    unnumber(root);
    std::map<std::uint32_t, std::uint32_t> numbers;
    TRY(renumber_fragments(root, *kept, numbers));
    fragments = std::move(kept);
    return {};
}

void Writer::State::unnumber(Node& directory) {
    directory.inode->number = 0;
    for (auto& [name, child] : directory.children) {
        child->inode->number = 0;
        child->inode->written = false;
        if (child->is_directory()) unnumber(*child);
    }
}

void Writer::State::number(Node& directory) {
    ++stats.directories;
    for (auto& [name, child] : directory.children) {
        if (child->inode->number != 0) continue; // another name of the same file
        child->inode->number = next_number++;
        if (child->is_directory()) number(*child);
    }
}

// Completes an inode and writes it; later tables refer to its position.
Status Writer::State::write_inode(EntryInode& inode) {
    auto& raw = *inode.raw;
    raw.base.mode = static_cast<sqfs_u16>(inode.attributes.mode);
    raw.base.mod_time = inode.attributes.mtime;
    raw.base.inode_number = inode.number;
    // Root owns everything in the image, whoever built it.
    sqfs_u16 root_index = 0;
    TRY(check(sqfs_id_table_id_to_index(ids.get(), 0, &root_index)));
    raw.base.uid_idx = raw.base.gid_idx = root_index;
    if (inode.xattrs != no_xattrs) TRY(check(sqfs_inode_set_xattr_index(&raw, inode.xattrs)));
    std::uint64_t block = 0;
    std::uint32_t offset = 0;
    sqfs_meta_writer_get_position(inode_table.get(), &block, &offset);
    inode.reference = block << 16U | offset;
    inode.written = true;
    return check(sqfs_meta_writer_write_inode(inode_table.get(), &raw));
}

Status Writer::State::write_file_inodes(Node& directory) {
    for (auto& [name, child] : directory.children) {
        EntryInode& inode = *child->inode;
        if (inode.written || child->is_directory()) continue;
        if (inode.type != S_IFREG) {
            sqfs_free(std::exchange(inode.raw, inode.type == S_IFLNK ? make_symlink_inode(inode.target)
                                                                     : make_whiteout_inode()));
            if (inode.raw == nullptr) return failed(SQFS_ERROR_ALLOC);
        } else {
            if (inode.links > 1 && inode.raw->base.type == SQFS_INODE_FILE)
                TRY(check(sqfs_inode_make_extended(inode.raw)));
            if (inode.raw->base.type == SQFS_INODE_EXT_FILE) inode.raw->data.file_ext.nlink = inode.links;
        }
        TRY(write_inode(inode));
    }
    for (auto& [name, child] : directory.children)
        if (child->is_directory()) TRY(write_file_inodes(*child));
    return {};
}

// Children come before parents, whose listings name inodes by position.
Status Writer::State::write_directories(Node& directory, const std::string& location, std::uint32_t parent) {
    std::uint32_t subdirectories = 0;
    for (auto& [name, child] : directory.children) {
        if (!child->is_directory()) continue;
        ++subdirectories;
        TRY(write_directories(*child, location + "/" + name, directory.inode->number));
    }
    TRY(check(sqfs_dir_writer_begin(listings.get(), 0)));
    for (auto& [name, child] : directory.children) {
        const EntryInode& entry = *child->inode;
        TRY(check(sqfs_dir_writer_add_entry(listings.get(), name.c_str(), entry.number, entry.reference,
                                            static_cast<sqfs_u16>(entry.type | entry.attributes.mode))));
    }
    TRY(check(sqfs_dir_writer_end(listings.get())));
    EntryInode& inode = *directory.inode;
    sqfs_free(
        std::exchange(inode.raw, sqfs_dir_writer_create_inode(listings.get(), 0, inode.xattrs, parent)));
    if (inode.raw == nullptr) return failed(SQFS_ERROR_ALLOC);
    const std::uint32_t links = subdirectories + 2;
    if (inode.raw->base.type == SQFS_INODE_DIR) {
        inode.raw->data.dir.nlink = links;
    } else {
        inode.raw->data.dir_ext.nlink = links;
        if (inode.raw->data.dir_ext.size > largest_listing)
            return fail({.what = "a directory has too many files",
                         .why = "its names take more than " + std::to_string(largest_listing >> 20U) + " MiB",
                         .where = location.empty() ? "/" : location,
                         .hint = "Distribute the files over several directories."});
    }
    return write_inode(inode);
}

Status Writer::State::write_tables() {
    TRY(drop_tables());
    data_end = file->size();
    next_number = 1;
    stats.directories = 0;
    unnumber(root);
    number(root);
    root.inode->number = next_number++;
    inode_table.reset(sqfs_meta_writer_create(file.get(), compressor.get(), 0));
    listing_table.reset(
        sqfs_meta_writer_create(file.get(), compressor.get(), SQFS_META_WRITER_KEEP_IN_MEMORY));
    if (!inode_table || !listing_table) return failed(SQFS_ERROR_ALLOC);
    listings.reset(sqfs_dir_writer_create(listing_table.get(), 0));
    if (!listings) return failed(SQFS_ERROR_ALLOC);

    super.inode_table_start = file->size();
    TRY(write_file_inodes(root));
    TRY(write_directories(root, {}, next_number));
    super.root_inode_ref = root.inode->reference;
    super.inode_count = next_number - 1;
    TRY(check(sqfs_meta_writer_flush(inode_table.get())));
    TRY(check(sqfs_meta_writer_flush(listing_table.get())));
    super.directory_table_start = file->size();
    TRY(check(sqfs_meta_write_write_to_file(listing_table.get())));
    TRY(check(sqfs_frag_table_write(fragments.get(), file.get(), &super, compressor.get())));
    TRY(check(sqfs_id_table_write(ids.get(), file.get(), &super, compressor.get())));
    if (has_xattrs) TRY(check(sqfs_xattr_writer_flush(xattrs.get(), file.get(), &super, compressor.get())));
    super.modification_time = options.source_date_epoch.value_or(newest);
    super.bytes_used = file->size();
    TRY(check(sqfs_super_write(&super, file.get())));
    const std::uint64_t padded = (file->size() + padding - 1) / padding * padding;
    return padded == file->size() ? Status() : check(file->truncate(file.get(), padded));
}

Status Writer::State::settle() {
    if (in_file)
        return fail({.what = "cannot finish the image",
                     .why = "a file is still being written",
                     .where = path.string()});
    TRY(check(sqfs_block_processor_finish(processor.get())));
    removed.clear();
    return {};
}

Status Writer::checkpoint() {
    TRY(state_->settle());
    return state_->write_tables();
}

Result<WriteStats> Writer::finish() {
    auto& state = *state_;
    TRY(state.settle());
    // Not earlier: libsquashfs uses its own table as long as content is added.
    TRY(state.keep_used_fragments());
    TRY(state.write_tables());
    state.stats.image_bytes = state.file->size();
    state.finished = true;
    return state.stats;
}

} // namespace containerize::image

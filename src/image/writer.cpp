#include "image/writer.h"

#include "image/squashfs_objects.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <map>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::image {

namespace {

constexpr std::uint32_t no_xattrs = 0xFFFFFFFF;
/// Images are padded to what a block device needs to be mounted from.
constexpr std::uint64_t padding = 4096;

struct Node {
    Attributes attributes;
    mode_t type = S_IFDIR;
    std::map<std::string, std::unique_ptr<Node>, std::less<>>
        children;             ///< of a directory, in the format's order
    std::string target;       ///< of a symbolic link
    Node* original = nullptr; ///< of a further hard link: the file itself
    std::uint32_t links = 1;  ///< names that a file has
    std::uint32_t xattrs = no_xattrs;
    std::uint32_t number = 0;
    std::uint64_t reference = 0;
    sqfs_inode_generic_t* inode = nullptr; ///< owned; libsquashfs fills it in for files, until finish()

    Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node() { sqfs_free(inode); }
};

/// The file itself, of which `node` may be a further name.
const Node& file_of(const Node& node) {
    return node.original != nullptr ? *node.original : node;
}

/// Null if there is no memory. calloc() because libsquashfs frees inodes with free().
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

} // namespace

struct Writer::State {
    std::filesystem::path path;
    WriterOptions options;
    bool finished = false;
    // The order matters: what is declared later uses what is declared before, and dies first.
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
    std::uint32_t next_number = 1;
    std::uint32_t newest = 0;
    WriteStats stats;

    ~State() {
        if (!finished && file) unlink(path.c_str());
    }

    std::unexpected<Error> failed(int code, std::string_view what = "cannot write the image") const {
        if (file && file->error_number() != 0)
            return fail_errno(std::string(what), path.string(), file->error_number());
        return fail(
            {.what = std::string(what), .why = squashfs_error(code), .where = path.string(), .hint = {}});
    }
    std::unexpected<Error> misuse(std::string_view entry, std::string why) const {
        return fail({.what = "cannot add '" + std::string(entry) + "' to the image",
                     .why = std::move(why),
                     .where = path.string(),
                     .hint = {}});
    }

    Status set_up();
    Status set_up_compressors();
    Result<Node*> add(std::string_view entry, mode_t type, const Attributes& attributes);
    Result<std::uint32_t> store_xattrs(const Attributes& attributes);

    void number(Node& directory);
    int write_inode(Node& node);
    int write_file_inodes(Node& directory);
    int write_directories(Node& directory, std::uint32_t parent);
    int write_tables();
};

Status Writer::State::set_up_compressors() {
    if (options.compression.compressor == Compressor::none) {
        compressor.reset(make_storing_compressor());
        if (!compressor) return failed(SQFS_ERROR_ALLOC);
        return {};
    }
    const bool zstd = options.compression.compressor == Compressor::zstd;
    sqfs_compressor_config_t config;
    if (const int code = sqfs_compressor_config_init(&config, zstd ? SQFS_COMP_ZSTD : SQFS_COMP_LZ4,
                                                     options.block_size, 0))
        return failed(code);
    if (zstd) config.level = static_cast<sqfs_u32>(options.compression.level);
    sqfs_compressor_t* made = nullptr;
    if (const int code = sqfs_compressor_create(&config, &made)) return failed(code);
    compressor.reset(make_shrinking_compressor(made));
    if (!compressor) return failed(SQFS_ERROR_ALLOC);
    config.flags |= SQFS_COMP_FLAG_UNCOMPRESS;
    if (const int code = sqfs_compressor_create(&config, &made)) return failed(code);
    decompressor.reset(made);
    return {};
}

Status Writer::State::set_up() {
    if (auto done = set_up_compressors(); !done) return done;
    const auto id = options.compression.compressor == Compressor::lz4 ? SQFS_COMP_LZ4 : SQFS_COMP_ZSTD;
    if (const int code = sqfs_super_init(&super, options.block_size, 0, id)) return failed(code);
    // A place for the superblock, which is known last.
    if (const int code = sqfs_super_write(&super, file.get())) return failed(code);
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
    // With these two, fragments that look the same by their 32-bit hash are compared before one stands for
    // the other. Blocks that are stored as they are need no decompressor, but libsquashfs compares nothing
    // without one: it gets the storing compressor, which it never asks.
    description.file = file.get();
    description.uncmp = decompressor ? decompressor.get() : compressor.get();
    sqfs_block_processor_t* made = nullptr;
    if (const int code = sqfs_block_processor_create_ex(&description, &made)) return failed(code);
    processor.reset(made);
    root.attributes.mode = 0755;
    return {};
}

Result<Node*> Writer::State::add(std::string_view entry, mode_t type, const Attributes& attributes) {
    if (in_file) return misuse(entry, "another file is still being written");
    // No system call could name it, and each level is one of recursion when the tables are written.
    if (entry.size() >= PATH_MAX) return misuse(entry, "its path is longer than Linux permits");
    auto xattr = store_xattrs(attributes);
    if (!xattr) return fail(std::move(xattr.error()));
    newest = std::max(newest, attributes.mtime);
    Node* node = &root;
    std::string_view rest = entry;
    while (!rest.empty()) {
        const auto slash = rest.find('/');
        const auto name = rest.substr(0, slash);
        if (name.empty() || name == "." || name == ".." || name.size() > 255 || name.find('\0') != name.npos)
            return misuse(entry, "it is not a path that an image can hold");
        const bool last = slash == rest.npos;
        auto found = node->children.find(name);
        if (found == node->children.end()) {
            auto made = std::make_unique<Node>();
            made->attributes.mode = 0755; // until the directory itself comes, if it does
            found = node->children.emplace(std::string(name), std::move(made)).first;
            if (last) found->second->type = 0;
        }
        node = found->second.get();
        if (!last && node->type != S_IFDIR) return misuse(entry, "a part of its path is not a directory");
        rest = last ? std::string_view() : rest.substr(slash + 1);
    }
    // A directory may come after what is in it.
    if (node->type != 0 && (node->type != S_IFDIR || type != S_IFDIR))
        return misuse(entry, "it is there already");
    node->type = type;
    node->attributes = attributes;
    node->attributes.mode &= 07777U;
    if (options.source_date_epoch)
        node->attributes.mtime = std::min(attributes.mtime, *options.source_date_epoch);
    node->xattrs = *xattr;
    return node;
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
    Fd fd(open(image.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd) return fail_errno("cannot make the image", image.string());
    state->file = std::make_unique<OutputFile>(std::move(fd));
    if (auto done = state->set_up(); !done) return fail(std::move(done.error()));
    return Writer(std::move(state));
}

Writer::Writer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Status Writer::add_directory(std::string_view path, const Attributes& attributes) {
    auto node = state_->add(path, S_IFDIR, attributes);
    if (!node) return fail(std::move(node.error()));
    return {};
}

Status Writer::add_symlink(std::string_view path, std::string_view target, const Attributes& attributes) {
    if (target.empty() || target.size() > 65535 || target.find('\0') != std::string_view::npos)
        return state_->misuse(path, "its link target is not one that an image can hold");
    auto node = state_->add(path, S_IFLNK, attributes);
    if (!node) return fail(std::move(node.error()));
    (*node)->target = target;
    ++state_->stats.links;
    return {};
}

Status Writer::add_hardlink(std::string_view path, std::string_view existing) {
    Node* original = &state_->root;
    for (std::string_view rest = existing; original != nullptr && !rest.empty();) {
        const auto slash = rest.find('/');
        const auto found = original->children.find(rest.substr(0, slash));
        original = found == original->children.end() ? nullptr : found->second.get();
        rest = slash == rest.npos ? std::string_view() : rest.substr(slash + 1);
    }
    if (original != nullptr && original->original != nullptr) original = original->original;
    if (original == nullptr || original->type != S_IFREG)
        return state_->misuse(path, "'" + std::string(existing) + "' is not a file of the image");
    auto node = state_->add(path, S_IFREG, {});
    if (!node) return fail(std::move(node.error()));
    (*node)->original = original;
    ++original->links;
    ++state_->stats.links;
    return {};
}

Status Writer::begin_file(std::string_view path, const Attributes& attributes) {
    auto node = state_->add(path, S_IFREG, attributes);
    if (!node) return fail(std::move(node.error()));
    if (const int code =
            sqfs_block_processor_begin_file(state_->processor.get(), &(*node)->inode, nullptr, 0))
        return state_->failed(code);
    state_->in_file = true;
    ++state_->stats.files;
    return {};
}

Status Writer::append(std::span<const std::byte> data) {
    if (data.empty()) return {}; // libsquashfs 1.2.0 crashes on nothing at a file's start
    if (const int code = sqfs_block_processor_append(state_->processor.get(), data.data(), data.size()))
        return state_->failed(code);
    state_->stats.input_bytes += data.size();
    return {};
}

Status Writer::end_file() {
    if (const int code = sqfs_block_processor_end_file(state_->processor.get())) return state_->failed(code);
    state_->in_file = false;
    return {};
}

void Writer::State::number(Node& directory) {
    ++stats.directories;
    for (auto& [name, child] : directory.children) {
        if (child->original != nullptr) continue;
        child->number = next_number++;
        if (child->type == S_IFDIR) number(*child);
    }
}

// Fills in what all inodes have, and writes it; later tables name it by the position that it gets.
int Writer::State::write_inode(Node& node) {
    auto& inode = *node.inode;
    inode.base.mode = static_cast<sqfs_u16>(node.attributes.mode);
    inode.base.mod_time = node.attributes.mtime;
    inode.base.inode_number = node.number;
    // Everything belongs to root in the image, whoever built it.
    for (auto* index : {&inode.base.uid_idx, &inode.base.gid_idx}) {
        sqfs_u16 root_index = 0;
        if (const int code = sqfs_id_table_id_to_index(ids.get(), 0, &root_index)) return code;
        *index = root_index;
    }
    if (node.xattrs != no_xattrs)
        if (const int code = sqfs_inode_set_xattr_index(&inode, node.xattrs)) return code;
    std::uint64_t block = 0;
    std::uint32_t offset = 0;
    sqfs_meta_writer_get_position(inode_table.get(), &block, &offset);
    node.reference = block << 16U | offset;
    const int code = sqfs_meta_writer_write_inode(inode_table.get(), &inode);
    sqfs_free(std::exchange(node.inode, nullptr)); // a large tree has many, and none is needed again
    return code;
}

int Writer::State::write_file_inodes(Node& directory) {
    for (auto& [name, child] : directory.children) {
        if (child->original != nullptr || child->type == S_IFDIR) continue;
        if (child->type == S_IFLNK) {
            child->inode = make_symlink_inode(child->target);
            if (child->inode == nullptr) return SQFS_ERROR_ALLOC;
        } else if (child->links > 1) {
            if (const int code = sqfs_inode_make_extended(child->inode)) return code;
            child->inode->data.file_ext.nlink = child->links;
        }
        if (const int code = write_inode(*child)) return code;
    }
    for (auto& [name, child] : directory.children)
        if (child->type == S_IFDIR)
            if (const int code = write_file_inodes(*child)) return code;
    return 0;
}

// Children before parents: a listing names its directories' inodes by position.
int Writer::State::write_directories(Node& directory, std::uint32_t parent) {
    std::uint32_t subdirectories = 0;
    for (auto& [name, child] : directory.children) {
        if (child->type != S_IFDIR) continue;
        ++subdirectories;
        if (const int code = write_directories(*child, directory.number)) return code;
    }
    if (const int code = sqfs_dir_writer_begin(listings.get(), 0)) return code;
    for (auto& [name, child] : directory.children) {
        const Node& entry = file_of(*child);
        if (const int code =
                sqfs_dir_writer_add_entry(listings.get(), name.c_str(), entry.number, entry.reference,
                                          static_cast<sqfs_u16>(entry.type | entry.attributes.mode)))
            return code;
    }
    if (const int code = sqfs_dir_writer_end(listings.get())) return code;
    directory.inode = sqfs_dir_writer_create_inode(listings.get(), 0, directory.xattrs, parent);
    if (directory.inode == nullptr) return SQFS_ERROR_ALLOC;
    const std::uint32_t links = subdirectories + 2;
    if (directory.inode->base.type == SQFS_INODE_DIR)
        directory.inode->data.dir.nlink = links;
    else
        directory.inode->data.dir_ext.nlink = links;
    return write_inode(directory);
}

int Writer::State::write_tables() {
    number(root);
    root.number = next_number++;
    inode_table.reset(sqfs_meta_writer_create(file.get(), compressor.get(), 0));
    listing_table.reset(
        sqfs_meta_writer_create(file.get(), compressor.get(), SQFS_META_WRITER_KEEP_IN_MEMORY));
    if (!inode_table || !listing_table) return SQFS_ERROR_ALLOC;
    listings.reset(sqfs_dir_writer_create(listing_table.get(), 0));
    if (!listings) return SQFS_ERROR_ALLOC;

    super.inode_table_start = file->size();
    if (const int code = write_file_inodes(root)) return code;
    if (const int code = write_directories(root, next_number)) return code;
    super.root_inode_ref = root.reference;
    super.inode_count = next_number - 1;
    if (const int code = sqfs_meta_writer_flush(inode_table.get())) return code;
    if (const int code = sqfs_meta_writer_flush(listing_table.get())) return code;
    super.directory_table_start = file->size();
    if (const int code = sqfs_meta_write_write_to_file(listing_table.get())) return code;
    if (const int code = sqfs_frag_table_write(fragments.get(), file.get(), &super, compressor.get()))
        return code;
    if (const int code = sqfs_id_table_write(ids.get(), file.get(), &super, compressor.get())) return code;
    if (has_xattrs)
        if (const int code = sqfs_xattr_writer_flush(xattrs.get(), file.get(), &super, compressor.get()))
            return code;
    super.modification_time = options.source_date_epoch.value_or(newest);
    super.bytes_used = file->size();
    if (const int code = sqfs_super_write(&super, file.get())) return code;
    const std::uint64_t padded = (file->size() + padding - 1) / padding * padding;
    return padded == file->size() ? 0 : file->truncate(file.get(), padded);
}

Result<WriteStats> Writer::finish() {
    auto& state = *state_;
    if (state.in_file)
        return fail({.what = "cannot finish the image",
                     .why = "a file is still being written",
                     .where = state.path.string(),
                     .hint = {}});
    if (const int code = sqfs_block_processor_finish(state.processor.get())) return state.failed(code);
    if (const int code = state.write_tables()) return state.failed(code);
    if (fsync(state.file->fd()) != 0) return fail_errno("cannot write the image", state.path.string());
    state.stats.image_bytes = state.file->size();
    state.finished = true;
    return state.stats;
}

} // namespace containerize::image

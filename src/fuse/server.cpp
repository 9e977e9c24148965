#include "fuse/server.h"

#include "core/resources.h"
#include "core/thread.h"
#include "fuse/separate_names.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dirent.h>
#include <linux/fuse.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace containerize::fuse {

namespace {

using image::Directory;
using image::Inode;
using image::Reference;

constexpr std::uint32_t fuse_statx = 52; ///< Linux 6.6

/// How long the kernel may cache names and attributes, in seconds: an image never changes.
constexpr std::uint64_t forever = 315'360'000;
constexpr std::size_t request_buffer = FUSE_MIN_READ_BUFFER + 4096;
constexpr std::uint32_t largest_directory_reply = 128U << 10U;

// FUSE reserves node 0 ("no such file") and node 1 (the root), while 0 is a valid inode reference.
constexpr std::uint64_t node_offset = 2;
// Above the image numbers in references (Layers::most_images). Nodes below the layer directory need ids of
// their own, or the kernel would take them for directories that were moved there.
constexpr std::uint64_t layer_bit = std::uint64_t{1} << 62U;
constexpr std::uint64_t empty_layer_node = UINT64_MAX - 1;

/// Requests that earlier servers may have died of; shared by all threads.
struct Quarantine {
    const Suspects& suspects;
    std::mutex alone;
};

/// Answers the requests of one descriptor. One object for each thread.
class Worker {
public:
    /// `names` is null for HardLinks::one_file.
    Worker(image::Layers& layers, int device, bool no_opendir, ServerStatistics& statistics,
           ServerProgress::Thread& progress, Quarantine& quarantine, MountRoot root, SeparateNames* names)
        : layers_(layers), device_(device), no_opendir_(no_opendir), statistics_(statistics),
          progress_(progress), quarantine_(quarantine), root_(root), names_(names) {}

    int run() {
        alignas(fuse_in_header) std::array<std::byte, request_buffer> buffer;
        for (;;) {
            const auto got = read(device_, buffer.data(), buffer.size());
            if (got < 0) {
                // ENOENT: the request was withdrawn while it was read.
                if (errno == EINTR || errno == EAGAIN || errno == ENOENT) continue;
                return errno == ENODEV ? 0 : errno;
            }
            if (got == 0) return 0;
            if (static_cast<std::size_t>(got) < sizeof(fuse_in_header)) return EPROTO;
            fuse_in_header header;
            std::memcpy(&header, buffer.data(), sizeof header);
            take_on(header, std::span(buffer).first(static_cast<std::size_t>(got)).subspan(sizeof header));
        }
    }

private:
    /// Records the request in shared memory while it is answered, in case this server dies of it.
    void take_on(const fuse_in_header& header, std::span<const std::byte> body) {
        const auto number = request_number(header.unique);
        const auto& suspects = quarantine_.suspects;
        std::unique_lock alone(quarantine_.alone, std::defer_lock);
        if (suspects.alone.contains(number)) alone.lock();
        progress_.request = number;
        unique_ = header.unique;
        if (suspects.refused.contains(number))
            fail(EIO);
        else
            answer_with_what_memory_there_is(header, body);
        progress_.request = 0;
        progress_.answered.fetch_add(1, std::memory_order_relaxed);
    }

    // An answer sends its reply last: if it runs out of memory before, it can be tried again without the
    // caches.
    void answer_with_what_memory_there_is(const fuse_in_header& header, std::span<const std::byte> body) {
        for (const bool first : {true, false}) {
            may_try_again_ = first;
            try {
                return answer(header, body);
            } catch (const std::bad_alloc&) {
                if (!first) return fail(ENOMEM);
                layers_.drop_caches();
                malloc_trim(0);
            }
        }
    }

    void answer(const fuse_in_header& header, std::span<const std::byte> body) {
        if (header.opcode < statistics_.requests.size())
            statistics_.requests[header.opcode].fetch_add(1, std::memory_order_relaxed);
        if (header.nodeid == empty_layer_node && answer_of_empty_layer(header, body)) return;
        in_layer_ = root_ == MountRoot::tree_and_layers ? header.nodeid & layer_bit : 0;
        switch (header.opcode) {
        case FUSE_LOOKUP:
            return lookup(header.nodeid, text(body));
        case FUSE_GETATTR:
            return get_attributes(header.nodeid);
        case FUSE_READLINK:
            return read_link(reference(header.nodeid));
        case FUSE_READ:
            return read_file(reference(header.nodeid), take<fuse_read_in>(body));
        case FUSE_READDIR:
            return read_directory(reference(header.nodeid), take<fuse_read_in>(body), false);
        case FUSE_READDIRPLUS:
            return read_directory(reference(header.nodeid), take<fuse_read_in>(body), true);
        case FUSE_STATFS:
            return statfs();
        case FUSE_FORGET:
        case FUSE_BATCH_FORGET:
            return; // nothing is remembered between requests; these expect no reply
        case FUSE_OPENDIR:
            if (no_opendir_) return fail(ENOSYS);
            return open_directory();
        case FUSE_RELEASE:
        case FUSE_RELEASEDIR:
        case FUSE_DESTROY:
            return fail(0);
        // Python calls isatty() on every file that it opens, and the kernel forwards each of these ioctls.
        case FUSE_IOCTL:
            return fail(ENOTTY);
        // Without any extended attributes, the usual case, ENOSYS settles this once and for all.
        case FUSE_GETXATTR:
            if (!layers_.has_xattrs()) return fail(ENOSYS);
            return get_xattr(reference(header.nodeid), body);
        case FUSE_LISTXATTR:
            if (!layers_.has_xattrs()) return fail(ENOSYS);
            return list_xattrs(reference(header.nodeid), take<fuse_getxattr_in>(body));
        // The kernel remembers ENOSYS for these and does not ask again. Its own behaviour is what we want:
        // without open, pages stay cached; for the others there is nothing to do.
        case FUSE_OPEN:
        case FUSE_FLUSH:
        case FUSE_FSYNC:
        case FUSE_FSYNCDIR:
        case FUSE_ACCESS:
        case FUSE_LSEEK:
        case FUSE_INTERRUPT:
        case FUSE_POLL:
        case fuse_statx:
            return fail(ENOSYS);
        default:
            return fail(EROFS);
        }
    }

    [[nodiscard]] bool is_separate(std::uint64_t node) const {
        return names_ != nullptr && SeparateNames::is_node(node);
    }
    [[nodiscard]] Reference reference(std::uint64_t node) const {
        // Layers reports that an unknown node does not exist.
        if (is_separate(node)) return names_->file(node).value_or(node);
        return node == FUSE_ROOT_ID ? layers_.root() : (node & ~in_layer_) - node_offset;
    }
    /// The node id; with layer_bit if the current request is below the layer directory.
    [[nodiscard]] std::uint64_t node(Reference reference) const {
        const bool is_root = reference == layers_.root() && in_layer_ == 0;
        return is_root ? std::uint64_t{FUSE_ROOT_ID} : (reference + node_offset) | in_layer_;
    }

    [[nodiscard]] fuse_attr attributes_of_empty_layer() const {
        fuse_attr attr{};
        attr.ino = empty_layer_node; // hidden by the overlay
        attr.mode = S_IFDIR | 0555;
        attr.nlink = 2;
        attr.uid = uid_;
        attr.gid = gid_;
        return attr;
    }
    /// Returns false where the usual answer applies.
    bool answer_of_empty_layer(const fuse_in_header& header, std::span<const std::byte> body) {
        switch (header.opcode) {
        case FUSE_LOOKUP:
            reply_missing();
            return true;
        case FUSE_GETATTR: {
            fuse_attr_out out{};
            out.attr_valid = forever;
            out.attr = attributes_of_empty_layer();
            reply(&out, sizeof out);
            return true;
        }
        case FUSE_READDIR:
        case FUSE_READDIRPLUS:
            reply(nullptr, 0);
            return true;
        case FUSE_GETXATTR:
            if (layers_.has_xattrs()) fail(ENODATA);
            return layers_.has_xattrs();
        case FUSE_LISTXATTR:
            if (layers_.has_xattrs()) reply_sized({}, take<fuse_getxattr_in>(body).size);
            return layers_.has_xattrs();
        default:
            return false;
        }
    }
    /// Answers for the two unlisted names; returns false for all others.
    bool look_up_layer(std::string_view name) {
        fuse_entry_out out{};
        out.entry_valid = out.attr_valid = forever;
        if (name == empty_layer_name) {
            out.nodeid = empty_layer_node;
            out.attr = attributes_of_empty_layer();
        } else if (name == layer_name) {
            const auto inode = layers_.inode(layers_.root());
            if (!inode) {
                fail(inode.error());
                return true;
            }
            out.nodeid = (layers_.root() + node_offset) | layer_bit;
            out.attr = attributes(out.nodeid, *inode);
        } else {
            return false;
        }
        reply(&out, sizeof out);
        return true;
    }

    static std::string_view text(std::span<const std::byte> body) {
        const auto* chars = reinterpret_cast<const char*>(body.data());
        return {chars, strnlen(chars, body.size())};
    }
    template<class T>
    static T take(std::span<const std::byte> body) {
        T value{};
        std::memcpy(&value, body.data(), std::min(sizeof value, body.size()));
        return value;
    }

    // A failed write means that the request is gone (interrupted or unmounted), so nobody needs the error.
    void reply(std::span<iovec> parts, std::size_t size) {
        fuse_out_header header{
            .len = static_cast<std::uint32_t>(sizeof header + size), .error = 0, .unique = unique_};
        parts[0] = {.iov_base = &header, .iov_len = sizeof header};
        [[maybe_unused]] const auto written = writev(device_, parts.data(), static_cast<int>(parts.size()));
    }
    void reply(const void* data, std::size_t size) {
        std::array<iovec, 2> parts{iovec{}, iovec{.iov_base = const_cast<void*>(data), .iov_len = size}};
        reply(parts, size);
    }
    void fail(int error_number) {
        if (error_number == ENOMEM && std::exchange(may_try_again_, false)) throw std::bad_alloc();
        const fuse_out_header header{.len = sizeof header, .error = -error_number, .unique = unique_};
        [[maybe_unused]] const auto written = write(device_, &header, sizeof header);
    }

    [[nodiscard]] fuse_attr attributes(std::uint64_t node, const Inode& inode) const {
        const bool separate = is_separate(node);
        fuse_attr attr{};
        attr.ino = separate ? node : inode.number;
        attr.size = inode.size;
        attr.blocks = (inode.size + 511) / 512;
        attr.atime = attr.mtime = attr.ctime = inode.mtime;
        attr.mode = inode.mode;
        attr.nlink = separate ? 1 : inode.nlink;
        attr.uid = uid_;
        attr.gid = gid_;
        attr.rdev = inode.rdev;
        attr.blksize = layers_.block_size();
        return attr;
    }
    [[nodiscard]] fuse_entry_out entry(Reference directory, std::string_view name, Reference reference,
                                       const Inode& inode) const {
        const bool separate = names_ != nullptr && inode.nlink > 1 && !S_ISDIR(inode.mode);
        fuse_entry_out out{};
        out.nodeid = separate ? names_->node(directory, name, reference) : node(reference);
        out.entry_valid = out.attr_valid = forever;
        out.attr = attributes(out.nodeid, inode);
        return out;
    }

    void reply_missing() {
        fuse_entry_out missing{}; // node 0 with a lifetime: the kernel caches that there is no such name
        missing.entry_valid = forever;
        reply(&missing, sizeof missing);
    }

    void lookup(std::uint64_t node, std::string_view name) {
        if (root_ == MountRoot::tree_and_layers && node == FUSE_ROOT_ID && look_up_layer(name)) return;
        const auto parent = reference(node);
        const auto found = layers_.lookup(parent, name);
        if (!found && found.error() == ENOENT) return reply_missing();
        if (!found) return fail(found.error());
        const auto inode = layers_.inode(*found);
        if (!inode) return fail(inode.error());
        const auto out = entry(parent, name, *found, *inode);
        reply(&out, sizeof out);
    }

    void get_attributes(std::uint64_t node) {
        const auto inode = layers_.inode(reference(node));
        if (!inode) return fail(inode.error());
        fuse_attr_out out{};
        out.attr_valid = forever;
        out.attr = attributes(node, *inode);
        reply(&out, sizeof out);
    }

    void read_link(Reference reference) {
        const auto target = layers_.read_link(reference);
        if (!target) return fail(target.error());
        reply(target->data(), target->size());
    }

    void read_file(Reference reference, const fuse_read_in& in) {
        slices_.clear();
        const auto done = layers_.read(reference, in.offset, in.size, slices_);
        if (!done) return fail(done.error());
        parts_.assign(1, iovec{});
        std::size_t size = 0;
        for (const auto& slice : slices_) {
            parts_.push_back(
                {.iov_base = const_cast<std::byte*>(slice.bytes.data()), .iov_len = slice.bytes.size()});
            size += slice.bytes.size();
        }
        reply(parts_, size);
        slices_.clear(); // so that the cache can evict the blocks
    }

    // A size of 0 asks for the length of the answer.
    void reply_sized(std::string_view answer, std::uint32_t size) {
        if (size == 0) {
            const fuse_getxattr_out out{.size = static_cast<std::uint32_t>(answer.size()), .padding = 0};
            return reply(&out, sizeof out);
        }
        if (answer.size() > size) return fail(ERANGE);
        reply(answer.data(), answer.size());
    }

    void get_xattr(Reference reference, std::span<const std::byte> body) {
        const auto in = take<fuse_getxattr_in>(body);
        const auto name = text(body.subspan(std::min(sizeof in, body.size())));
        const auto xattrs = layers_.xattrs(reference);
        if (!xattrs) return fail(xattrs.error());
        const auto found = std::ranges::find(*xattrs, name, &image::Xattr::name);
        if (found == xattrs->end()) return fail(ENODATA);
        reply_sized(found->value, in.size);
    }

    void list_xattrs(Reference reference, const fuse_getxattr_in& in) {
        const auto xattrs = layers_.xattrs(reference);
        if (!xattrs) return fail(xattrs.error());
        std::string names;
        for (const auto& xattr : *xattrs)
            names.append(xattr.name).push_back('\0');
        reply_sized(names, in.size);
    }

    void open_directory() {
        fuse_open_out out{};
        out.open_flags = FOPEN_KEEP_CACHE | FOPEN_CACHE_DIR;
        reply(&out, sizeof out);
    }

    // An entry's offset is its position in the sorted listing, after "." and "..": the same in every server.
    void read_directory(Reference reference, const fuse_read_in& in, bool plus) {
        const auto loaded = layers_.directory(reference);
        if (!loaded) return fail(loaded.error());
        const Directory& directory = **loaded;
        listing_.clear();
        const std::size_t limit = std::min(in.size, largest_directory_reply);
        for (std::uint64_t position = in.offset; position < directory.entries.size() + 2; ++position) {
            if (position < 2) {
                const fuse_entry_out none{}; // node 0: the kernel does not cache this entry
                const fuse_dirent dots{.ino = 1, .off = position + 1, .namelen = 0, .type = DT_DIR};
                if (!append(position == 0 ? "." : "..", dots, plus ? &none : nullptr, limit)) break;
                continue;
            }
            const auto& item = directory.entries[position - 2];
            const auto inode = layers_.inode(item.inode);
            if (!inode) return fail(inode.error());
            const auto name = directory.name(item);
            const auto known = entry(reference, name, item.inode, *inode);
            const fuse_dirent dirent{
                .ino = known.attr.ino, .off = position + 1, .namelen = 0, .type = item.type};
            if (!append(name, dirent, plus ? &known : nullptr, limit)) break;
        }
        reply(listing_.data(), listing_.size());
    }

    // Returns false if the entry does not fit.
    bool append(std::string_view name, fuse_dirent dirent, const fuse_entry_out* known, std::size_t limit) {
        const std::size_t fixed = FUSE_NAME_OFFSET + (known != nullptr ? sizeof *known : 0);
        const std::size_t padded = FUSE_DIRENT_ALIGN(fixed + name.size());
        const std::size_t start = listing_.size();
        if (start + padded > limit) return false;
        listing_.resize(start + padded);
        std::byte* at = listing_.data() + start;
        if (known != nullptr) {
            std::memcpy(at, known, sizeof *known);
            at += sizeof *known;
        }
        dirent.namelen = static_cast<std::uint32_t>(name.size());
        std::memcpy(at, &dirent, FUSE_NAME_OFFSET);
        std::memcpy(at + FUSE_NAME_OFFSET, name.data(), name.size());
        return true;
    }

    void statfs() {
        fuse_statfs_out out{};
        out.st.bsize = out.st.frsize = layers_.block_size();
        out.st.blocks = (layers_.bytes() + layers_.block_size() - 1) / layers_.block_size();
        out.st.files = layers_.inode_count();
        out.st.namelen = NAME_MAX;
        reply(&out, sizeof out);
    }

    image::Layers& layers_;
    int device_;
    bool no_opendir_;
    const uid_t uid_ = geteuid();
    const gid_t gid_ = getegid();
    ServerStatistics& statistics_;
    ServerProgress::Thread& progress_;
    Quarantine& quarantine_;
    MountRoot root_;
    SeparateNames* names_;
    std::uint64_t unique_ = 0;
    bool may_try_again_ = false;       ///< once more, without the caches, if memory is lacking
    std::uint64_t in_layer_ = 0;       ///< layer_bit while a request below the layer directory is answered
    std::vector<image::Slice> slices_; ///< these three keep their memory between requests
    std::vector<iovec> parts_;
    std::vector<std::byte> listing_;
};

/// Drops caches when the programs that the server works for have little memory left, but not again before
/// more blocks were loaded.
void drop_caches_under_pressure(const std::stop_token& stop, image::Layers& layers,
                                const image::Statistics& statistics) {
    constexpr std::uint64_t scarce = std::uint64_t{256} << 20U;
    std::mutex mutex;
    std::condition_variable_any never;
    std::uint64_t loaded_when_shed = 0;
    for (std::unique_lock lock(mutex); !stop.stop_requested();) {
        never.wait_for(lock, stop, std::chrono::seconds(10), [] { return false; });
        const auto loaded = statistics.blocks_loaded.load(std::memory_order_relaxed);
        if (stop.stop_requested() || loaded == loaded_when_shed || available_resources().memory >= scarce)
            continue;
        loaded_when_shed = loaded;
        layers.drop_caches();
        malloc_trim(0);
    }
}

} // namespace

int serve_fuse(image::Layers& layers, const FuseConnection& connection, const ServerOptions& options) {
    ServerStatistics unread;
    auto& statistics = options.statistics == nullptr ? unread : *options.statistics;
    prctl(PR_SET_NAME, "containerize-fs");
    // Blocks are allocated and freed all the time; by default each would cost an mmap() and page faults.
    mallopt(M_MMAP_THRESHOLD, 8 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    mallopt(M_ARENA_MAX, 2);
    std::optional<SeparateNames> names;
    if (options.hard_links == HardLinks::separate_files) names.emplace();
    Quarantine quarantine{.suspects = options.suspects, .alone = {}};
    std::atomic<int> result{0};
    const auto work = [&](std::size_t thread) {
        Worker worker(layers, connection.devices[thread].get(), connection.features.no_opendir, statistics,
                      statistics.progress.threads.at(thread), quarantine, options.root,
                      names ? &*names : nullptr);
        if (const int error_number = worker.run()) result = error_number;
    };
    {
        std::vector<std::jthread> threads;
        if_threads_are_left([&] {
            threads.emplace_back(drop_caches_under_pressure, std::ref(layers), std::cref(statistics.image));
            for (std::size_t i = 1; i < connection.devices.size(); ++i)
                threads.emplace_back(work, i);
        });
        work(0);
        if (!threads.empty()) threads.front().request_stop();
    }
    return result;
}

} // namespace containerize::fuse

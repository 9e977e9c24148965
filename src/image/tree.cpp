#include "image/layers.h"
#include "image/writer.h"
#include "util/fd.h"
#include "util/interrupt.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace containerize::image {

namespace {

namespace fs = std::filesystem;

struct Entry {
    std::string path; ///< relative to the root
    mode_t type = 0;
    std::uint64_t size = 0;
    Attributes attributes;
    std::string target;          ///< of a symbolic link
    bool covers = false;         ///< whiteout, or opaque directory: what the image has at this path goes
    std::size_t original = npos; ///< for a further name of a file: the entry of its first name
    static constexpr std::size_t npos = ~std::size_t{0};
};

std::vector<std::pair<std::string, std::string>> user_xattrs(const std::string& path) {
    std::vector<std::pair<std::string, std::string>> found;
    const auto size = llistxattr(path.c_str(), nullptr, 0);
    if (size <= 0) return found; // none, or a filesystem without
    std::string names(static_cast<std::size_t>(size), '\0');
    const auto got = llistxattr(path.c_str(), names.data(), names.size());
    if (got <= 0) return found;
    names.resize(static_cast<std::size_t>(got));
    for (std::size_t start = 0; start < names.size();) {
        const std::string name = names.c_str() + start;
        start += name.size() + 1;
        if (!name.starts_with("user.") || name.starts_with(overlay_xattrs)) continue;
        std::string value(65536, '\0');
        const auto length = lgetxattr(path.c_str(), name.c_str(), value.data(), value.size());
        if (length < 0) continue;
        value.resize(static_cast<std::size_t>(length));
        found.emplace_back(name, std::move(value));
    }
    std::ranges::sort(found);
    return found;
}

bool is_opaque(const std::string& directory) {
    char value = 0;
    return lgetxattr(directory.c_str(), std::string(opaque_xattr).c_str(), &value, 1) == 1 && value == 'y';
}

class TreeWalk {
public:
    TreeWalk(fs::path root, mode_t umask_bits) : root_(std::move(root)), umask_(umask_bits) {}

    // Depth first, each directory's entries in the order of their names' bytes.
    Status walk(const std::string& relative) {
        const std::string directory = relative.empty() ? root_.string() : (root_ / relative).string();
        std::vector<std::string> names;
        {
            const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(directory.c_str()), closedir);
            if (!listing) return fail_errno("cannot read a directory to pack it", directory);
            while (const dirent* entry = readdir(listing.get()))
                if (const std::string name = static_cast<const char*>(entry->d_name);
                    name != "." && name != "..")
                    names.push_back(name);
        }
        std::ranges::sort(names);
        for (const auto& name : names)
            if (auto done = visit(relative.empty() ? name : relative + "/" + name); !done) return done;
        return {};
    }

    Status visit(const std::string& relative) {
        const std::string path = (root_ / relative).string();
        struct stat info {};
        if (lstat(path.c_str(), &info) != 0) return fail_errno("cannot examine a file to pack it", path);
        Entry entry{
            .path = relative, .type = info.st_mode & S_IFMT, .size = 0, .attributes = {}, .target = {}};
        entry.attributes = {.mode = mode_for_sharing(info.st_mode, umask_),
                            .mtime =
                                static_cast<std::uint32_t>(std::clamp<time_t>(info.st_mtime, 0, 0xFFFFFFFF)),
                            .xattrs = user_xattrs(path)};
        if (S_ISLNK(info.st_mode)) {
            entry.attributes.mode = 0777;
            entry.target.resize(PATH_MAX); // on the heap: this function recurses, once for each level
            const auto size = readlink(path.c_str(), entry.target.data(), entry.target.size());
            if (size <= 0) return fail_errno("cannot read a link to pack it", path);
            entry.target.resize(static_cast<std::size_t>(size));
            entry.target.shrink_to_fit();
        } else if (S_ISREG(info.st_mode)) {
            entry.size = static_cast<std::uint64_t>(info.st_size);
            if (info.st_nlink > 1) {
                const auto [first, is_new] =
                    first_names_.emplace(std::pair(info.st_dev, info.st_ino), entries.size());
                if (!is_new) entry.original = first->second;
            }
        } else if (S_ISDIR(info.st_mode)) {
            entry.covers = is_opaque(path);
        } else if (S_ISCHR(info.st_mode) && info.st_rdev == 0) {
            entry.covers = true;
        } else {
            left_out.push_back(relative);
            return {};
        }
        entries.push_back(std::move(entry));
        return S_ISDIR(info.st_mode) ? walk(relative) : Status();
    }

    std::vector<Entry> entries;
    std::vector<std::string> left_out;

private:
    fs::path root_;
    mode_t umask_;
    std::map<std::pair<dev_t, ino_t>, std::size_t> first_names_;
};

std::unexpected<Error> changed(const std::string& path) {
    return fail({.what = "a file changed while it was packed",
                 .why = {},
                 .where = path,
                 .hint = "See that nothing writes there, then try again."});
}

/// Reads small files ahead of the packer: opening and reading 50,000 files one by one would leave compressors
/// idle.
class ReadAhead {
public:
    ReadAhead(const fs::path& root, const std::vector<Entry>& entries) : root_(root), entries_(entries) {
        for (unsigned i = 0; i < 2; ++i)
            threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    static bool covers(const Entry& entry) {
        return entry.type == S_IFREG && entry.original == Entry::npos && entry.size <= largest;
    }

    /// The content of an entry that is covered. Entries must be taken in order.
    Result<std::vector<std::byte>> take(std::size_t index) {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [&] { return done_.contains(index); });
        auto node = done_.extract(index);
        held_ -= entries_[index].size;
        lock.unlock();
        room_.notify_all();
        return std::move(node.mapped());
    }

private:
    static constexpr std::uint64_t largest = 1U << 20U;
    static constexpr std::uint64_t window = 32U << 20U;

    void work(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            std::unique_lock lock(mutex_);
            while (next_ < entries_.size() && !covers(entries_[next_]))
                ++next_;
            if (next_ >= entries_.size()) return;
            const std::size_t index = next_++;
            held_ += entries_[index].size;
            // The file that the packer waits for is always read, however full the window is.
            // Waiting on the stop token, too: a stop between the look and the wait would otherwise be missed.
            if (!room_.wait(lock, stop, [&] { return held_ <= window || is_next(index); })) return;
            lock.unlock();
            auto content = read_whole((root_ / entries_[index].path).string(), entries_[index].size);
            lock.lock();
            done_.emplace(index, std::move(content));
            lock.unlock();
            ready_.notify_all();
        }
    }

    // Whether nothing that was read already comes before it: then the packer waits for it, or soon will.
    [[nodiscard]] bool is_next(std::size_t index) const {
        return done_.empty() || index < done_.begin()->first;
    }

    static Result<std::vector<std::byte>> read_whole(const std::string& path, std::uint64_t size) {
        const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
        if (!fd) return fail_errno("cannot open a file to pack it", path);
        std::vector<std::byte> content(size + 1); // one more, to see that it did not grow
        std::size_t done = 0;
        while (done < content.size()) {
            const auto got = read(fd.get(), content.data() + done, content.size() - done);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return fail_errno("cannot read a file to pack it", path);
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        if (done != size) return changed(path);
        content.resize(size);
        return content;
    }

    const fs::path& root_;
    const std::vector<Entry>& entries_;
    std::mutex mutex_;
    std::condition_variable_any room_;
    std::condition_variable ready_;
    std::map<std::size_t, Result<std::vector<std::byte>>> done_;
    std::size_t next_ = 0;
    std::uint64_t held_ = 0;
    std::vector<std::jthread> threads_; ///< last, so stopped and joined first: they use all of the above
};

Status append_large(Writer& writer, const std::string& path, std::uint64_t size, const PackProgress& progress,
                    std::uint64_t done_before) {
    const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) return fail_errno("cannot open a file to pack it", path);
    posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    std::vector<std::byte> buffer(1U << 20U);
    std::uint64_t done = 0;
    for (;;) {
        const auto got = read(fd.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno("cannot read a file to pack it", path);
        if (got == 0) break;
        done += static_cast<std::uint64_t>(got);
        if (done > size) return changed(path);
        if (interrupted()) return fail_interrupted(); // a library of gigabytes takes a minute
        if (auto put = writer.append(std::span(buffer).first(static_cast<std::size_t>(got))); !put)
            return put;
        if (progress) progress(done_before + done);
    }
    return done == size ? Status() : Status(changed(path));
}

Attributes attributes_of_root(const fs::path& root, const struct stat& info, mode_t umask_bits) {
    return {.mode = mode_for_sharing(info.st_mode, umask_bits),
            .mtime = static_cast<std::uint32_t>(std::clamp<time_t>(info.st_mtime, 0, 0xFFFFFFFF)),
            .xattrs = user_xattrs(root.string())};
}

class TreeWriter {
public:
    TreeWriter(Writer& writer, const fs::path& root, const std::vector<Entry>& entries, Whiteouts whiteouts,
               const PackProgress& progress)
        : writer_(writer), root_(root), entries_(entries), whiteouts_(whiteouts), progress_(progress),
          ahead_(root, entries) {}

    Status add(std::size_t index) {
        const Entry& entry = entries_[index];
        // A directory in the place of one that a whiteout of this layer removed shows nothing of that one.
        const bool opaque = entry.covers || writer_.is_whiteout(entry.path);
        // Of what was there before, only a directory stays, and only under a directory.
        const Attributes* merged =
            entry.covers || entry.type != S_IFDIR ? nullptr : writer_.directory(entry.path);
        if (merged == nullptr) writer_.remove(entry.path);
        switch (entry.type) {
        case S_IFCHR:
            return whiteouts_ == Whiteouts::keep ? writer_.add_whiteout(entry.path) : Status();
        case S_IFDIR:
            return add_directory(entry, merged, opaque && whiteouts_ == Whiteouts::keep);
        case S_IFLNK:
            return writer_.add_symlink(entry.path, entry.target, entry.attributes);
        default:
            if (entry.original != Entry::npos)
                return writer_.add_hardlink(entry.path, entries_[entry.original].path);
            return add_file(index);
        }
    }

private:
    // A merged directory keeps its time: copying a child up sets an overlay's directory back to the time it
    // had when that began, so what is found there depends on which of two threads came first.
    Status add_directory(const Entry& entry, const Attributes* merged, bool opaque) {
        auto attributes = entry.attributes;
        if (merged != nullptr) attributes.mtime = merged->mtime;
        if (opaque) attributes.xattrs.emplace_back(opaque_xattr, "y");
        return writer_.add_directory(entry.path, attributes);
    }

    Status add_file(std::size_t index) {
        const Entry& entry = entries_[index];
        if (auto begun = writer_.begin_file(entry.path, entry.attributes); !begun) return begun;
        Status added;
        if (ReadAhead::covers(entry)) {
            auto content = ahead_.take(index);
            added = content ? writer_.append(*content) : Status(fail(std::move(content.error())));
        } else {
            added = append_large(writer_, (root_ / entry.path).string(), entry.size, progress_, bytes_);
        }
        if (!added) return added;
        bytes_ += entry.size;
        if (progress_) progress_(bytes_);
        return writer_.end_file();
    }

    Writer& writer_;
    const fs::path& root_;
    const std::vector<Entry>& entries_;
    Whiteouts whiteouts_;
    const PackProgress& progress_;
    ReadAhead ahead_;
    std::uint64_t bytes_ = 0;
};

} // namespace

mode_t mode_for_sharing(mode_t mode, mode_t umask_bits) {
    const mode_t read = 0444;
    const mode_t execute = S_ISDIR(mode) || (mode & 0111U) != 0 ? 0111 : 0;
    const mode_t write = mode & 0200U;
    return (read | execute | write) & ~(umask_bits & 0077U);
}

Result<std::vector<std::string>> add_tree(Writer& writer, const fs::path& root, mode_t umask_bits,
                                          Whiteouts whiteouts, const PackProgress& progress) {
    struct stat info {};
    if (stat(root.c_str(), &info) != 0) return fail_errno("cannot pack", root.string());
    if (!S_ISDIR(info.st_mode)) return fail_errno("cannot pack", root.string(), ENOTDIR);
    TreeWalk tree(root, umask_bits);
    if (auto walked = tree.walk({}); !walked) return fail(std::move(walked.error()));
    if (auto added = writer.add_directory("", attributes_of_root(root, info, umask_bits)); !added)
        return fail(std::move(added.error()));
    TreeWriter entries(writer, root, tree.entries, whiteouts, progress);
    for (std::size_t i = 0; i < tree.entries.size(); ++i) {
        if (interrupted()) return fail_interrupted();
        if (auto added = entries.add(i); !added) return fail(std::move(added.error()));
    }
    return std::move(tree.left_out);
}

Result<WriteStats> write_tree(const fs::path& root, const fs::path& image, const WriterOptions& options,
                              mode_t umask_bits, const PackProgress& progress) {
    auto writer = Writer::create(image, options);
    if (!writer) return fail(std::move(writer.error()));
    auto left_out = add_tree(*writer, root, umask_bits, Whiteouts::apply, progress);
    if (!left_out) return fail(std::move(left_out.error()));
    auto stats = writer->finish();
    if (stats) stats->left_out = std::move(*left_out);
    return stats;
}

} // namespace containerize::image

#include "core/fd.h"
#include "core/interrupt.h"
#include "core/read_write.h"
#include "image/layers.h"
#include "image/tree_entries.h"
#include "image/writer.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::image {

namespace {

namespace fs = std::filesystem;

using Entry = TreeEntry;

std::unexpected<Error> changed(const std::string& path) {
    return fail({.what = "a file changed while it was being packed",
                 .where = path,
                 .hint = "Make sure that no program writes to it, then try again."});
}

/// Reads small files ahead of the packer: opening and reading 50,000 files one by one would leave compressors
/// idle.
class ReadAhead {
public:
    explicit ReadAhead(const TreeEntries& tree) : root_(tree.root), entries_(tree.entries) {
        for (unsigned i = 0; i < 2; ++i)
            threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    static bool covers(const Entry& entry) {
        return entry.type == S_IFREG && entry.original == Entry::npos && entry.size <= largest;
    }

    /// The content of an entry for which covers() is true. Entries must be taken in order.
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
            // The file that the packer waits for is always read, even if the window is full. The wait
            // includes the stop token: otherwise a stop between the check and the wait would be missed.
            if (!room_.wait(lock, stop, [&] { return held_ <= window || is_next(index); })) return;
            lock.unlock();
            auto content = read_whole((root_ / entries_[index].path).string(), entries_[index].size);
            lock.lock();
            done_.emplace(index, std::move(content));
            lock.unlock();
            ready_.notify_all();
        }
    }

    // Whether no earlier file is ready: then the packer waits for this one, or soon will.
    [[nodiscard]] bool is_next(std::size_t index) const {
        return done_.empty() || index < done_.begin()->first;
    }

    static Result<std::vector<std::byte>> read_whole(const std::string& path, std::uint64_t size) {
        const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
        if (!fd) return fail_errno("cannot open a file to pack it", path);
        std::vector<std::byte> content(size + 1); // one more byte, to notice growth
        const auto got = read_all(fd.get(), content.data(), content.size());
        if (got < 0) return fail_errno("cannot read a file to pack it", path);
        if (static_cast<std::uint64_t>(got) != size) return changed(path);
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
    std::vector<std::jthread> threads_; ///< last, so that they are joined before what they use is destroyed
};

Status append_large(Writer& writer, const std::string& path, std::uint64_t size, const PackProgress& progress,
                    std::uint64_t done_before) {
    const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) return fail_errno("cannot open a file to pack it", path);
    posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    std::vector<std::byte> buffer(1U << 20U);
    std::uint64_t done = 0;
    for (;;) {
        const auto got = read_all(fd.get(), buffer.data(), buffer.size());
        if (got < 0) return fail_errno("cannot read a file to pack it", path);
        if (got == 0) break;
        done += static_cast<std::uint64_t>(got);
        if (done > size) return changed(path);
        if (interrupted()) return fail_interrupted(); // a library of gigabytes takes a minute
        TRY(writer.append(std::span(buffer).first(static_cast<std::size_t>(got))));
        if (progress) progress(done_before + done);
    }
    return done == size ? Status() : Status(changed(path));
}

class TreeWriter {
public:
    TreeWriter(Writer& writer, const TreeEntries& tree, Whiteouts whiteouts, const PackProgress& progress)
        : writer_(writer), root_(tree.root), entries_(tree.entries), whiteouts_(whiteouts),
          progress_(progress), ahead_(tree) {}

    Status add(std::size_t index) {
        const Entry& entry = entries_[index];
        // An existing entry stays only if it is a directory that is merged with another.
        const Attributes* merged =
            entry.covers || entry.type != S_IFDIR ? nullptr : writer_.directory(entry.path);
        if (merged == nullptr) writer_.remove(entry.path);
        switch (entry.type) {
        case S_IFCHR:
            return whiteouts_ == Whiteouts::keep ? writer_.add_whiteout(entry.path) : Status();
        case S_IFDIR:
            return add_directory(entry, merged);
        case S_IFLNK:
            return writer_.add_symlink(entry.path, entry.target, entry.attributes);
        default:
            if (entry.original != Entry::npos)
                return writer_.add_hardlink(entry.path, entries_[entry.original].path);
            return add_file(index);
        }
    }

private:
    // A merged directory keeps its time. When overlayfs copies a child up, it sets the directory's time back
    // to what it was at the start of the copy, so the time found depends on the order of threads.
    Status add_directory(const Entry& entry, const Attributes* merged) {
        auto attributes = entry.attributes;
        if (merged != nullptr) attributes.mtime = merged->mtime;
        if (entry.covers && whiteouts_ == Whiteouts::keep) attributes.xattrs.emplace_back(opaque_xattr, "y");
        return writer_.add_directory(entry.path, attributes);
    }

    Status add_file(std::size_t index) {
        const Entry& entry = entries_[index];
        TRY(writer_.begin_file(entry.path, entry.attributes));
        if (ReadAhead::covers(entry)) {
            const auto content = TRY(ahead_.take(index));
            TRY(writer_.append(content));
        } else {
            TRY(append_large(writer_, (root_ / entry.path).string(), entry.size, progress_, bytes_));
        }
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

Status add_entries(Writer& writer, const TreeEntries& tree, Whiteouts whiteouts,
                   const PackProgress& progress) {
    TRY(writer.add_directory("", tree.attributes_of_root));
    TreeWriter entries(writer, tree, whiteouts, progress);
    for (std::size_t i = 0; i < tree.entries.size(); ++i) {
        if (interrupted()) return fail_interrupted();
        TRY(entries.add(i));
    }
    return {};
}

Result<std::vector<std::string>> add_tree(Writer& writer, const fs::path& root, mode_t umask_bits,
                                          const PackProgress& progress) {
    auto tree = TRY(list_tree(root, umask_bits));
    TRY(add_entries(writer, tree, Whiteouts::apply, progress));
    return std::move(tree.left_out);
}

Result<WriteStats> write_tree(const fs::path& root, const fs::path& image, const WriterOptions& options,
                              mode_t umask_bits, const PackProgress& progress) {
    auto writer = TRY(Writer::create(image, options));
    auto left_out = TRY(add_tree(writer, root, umask_bits, progress));
    auto stats = writer.finish();
    if (stats) stats->left_out = std::move(left_out);
    return stats;
}

} // namespace containerize::image

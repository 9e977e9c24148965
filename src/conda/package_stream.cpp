#include "conda/package_stream.h"

#include "conda/archive.h"
#include "conda/prefix_replacement.h"
#include "util/digest.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

namespace containerize::conda {

namespace {

/// Approximate size of a piece, even if replacing the prefix makes the content grow.
constexpr std::size_t piece_size = 1U << 20U;

} // namespace

/// Unpacks one package in one thread.
class PackageStreams::Unpacking {
public:
    Unpacking(PackageStreams& streams, std::size_t index)
        : streams_(streams), index_(index), plan_(streams.plan_(index)) {}

    void run() {
        auto done = unpack();
        if (done || !abandoned_) streams_.put(index_, std::move(done));
    }

private:
    /// Returns the last piece.
    Result<Piece> unpack() {
        auto archive = TRY(PackageArchive::open(plan_.archive, plan_.name));
        TRY(archive.payload(
            [this](const ArchiveEntry& entry, const ReadMore& read) { return visit(entry, read); }));
        TRY(check_complete());
        TRY(deliver_orphans(archive));
        return Piece{};
    }

    std::unexpected<Error> wrong(const std::string& path, std::string why) const {
        return fail({.what = "the package " + plan_.name + " is damaged",
                     .why = "'" + path + "' " + std::move(why),
                     .where = plan_.archive.path.string(),
                     .hint = "Remove it with `containerize cache clean`, and try again. If the error "
                             "remains, tell the channel's maintainers."});
    }

    // Fails if the consumer has stopped.
    Status deliver(Piece piece) {
        if (streams_.put(index_, std::move(piece))) return {};
        abandoned_ = true;
        return fail(Error{});
    }

    Status visit(const ArchiveEntry& entry, const ReadMore& read) {
        const auto found = plan_.paths.find(entry.path);
        if (found == plan_.paths.end()) return {}; // conda does not install unlisted files either
        const auto& planned = found->second;
        if (!came_.insert(entry.path).second) return wrong(entry.path, "is in the archive twice");
        if (entry.type == EntryType::hardlink) return visit_hardlink(entry, planned);
        if (!planned.wanted) return {};
        Piece piece = piece_of(entry, planned);
        switch (entry.type) {
        case EntryType::directory:
            piece.kind = Piece::Kind::directory;
            return deliver(std::move(piece));
        case EntryType::symlink:
            if (entry.target.empty()) return wrong(entry.path, "is a link with an empty target");
            piece.kind = Piece::Kind::symlink;
            piece.target = entry.target;
            return deliver(std::move(piece));
        case EntryType::file:
            return deliver_file(entry, planned, read);
        case EntryType::hardlink:
            break;
        }
        return {};
    }

    static Piece piece_of(const ArchiveEntry& entry, const PlannedPath& planned) {
        return {.path = planned.target, .entry = planned.entry, .mtime = entry.mtime};
    }

    Status deliver_file(const ArchiveEntry& entry, const PlannedPath& planned, const ReadMore& read) {
        Piece piece = piece_of(entry, planned);
        piece.kind = Piece::Kind::file;
        piece.mode = S_IFREG | entry.mode;
        if (planned.entry->has_size && planned.entry->size != entry.size)
            return wrong(planned.entry->path, fmt::format("has {} bytes, and the file list says {}",
                                                          entry.size, planned.entry->size));
        return planned.entry->placeholder.empty() ? stream(std::move(piece), read)
                                                  : change(std::move(piece), read);
    }

    Status deliver_hardlink(const PlannedPath& link, std::uint32_t mtime, const PlannedPath& original) {
        Piece piece{.kind = Piece::Kind::hardlink,
                    .path = link.target,
                    .entry = link.entry,
                    .mode = S_IFREG | 0644U,
                    .mtime = mtime,
                    .target = original.target};
        if (const auto changed = changed_.find(original.entry->path); changed != changed_.end())
            piece.sha256 = changed->second;
        return deliver(std::move(piece));
    }

    Status visit_hardlink(const ArchiveEntry& entry, const PlannedPath& planned) {
        const auto through = original_of_.find(entry.target);
        const auto& name = through == original_of_.end() ? entry.target : through->second;
        const auto original = plan_.paths.find(name);
        if (original == plan_.paths.end() || !came_.contains(name))
            return wrong(entry.path, "is a hard link to '" + name + "', which is not listed or comes later");
        original_of_.emplace(entry.path, original->first);
        const auto& one = *planned.entry;
        const auto& other = *original->second.entry;
        const bool other_size = one.has_size && other.has_size && one.size != other.size;
        const bool other_content = !one.sha256.empty() && !other.sha256.empty() && one.sha256 != other.sha256;
        if (other_size || other_content)
            return wrong(entry.path,
                         "is a hard link to '" + name + "', but the file list says that they differ");
        if (!planned.wanted) return {};
        if (original->second.wanted) return deliver_hardlink(planned, entry.mtime, original->second);
        // Another package owns the original's path, and the original's content has already been read.
        orphans_[name].push_back(&planned);
        return {};
    }

    /// Reads the archive again for the content of links whose original belongs to another package.
    Status deliver_orphans(const PackageArchive& archive) {
        if (orphans_.empty()) return {};
        return archive.payload([this](const ArchiveEntry& entry, const ReadMore& read) -> Status {
            const auto found = orphans_.find(entry.path);
            if (found == orphans_.end()) return {};
            const auto& links = found->second;
            if (entry.type != EntryType::file)
                return wrong(links.front()->entry->path,
                             "is a hard link to '" + entry.path + "', which is not a file");
            TRY(deliver_file(entry, *links.front(), read));
            for (std::size_t i = 1; i < links.size(); ++i)
                TRY(deliver_hardlink(*links[i], entry.mtime, *links.front()));
            return {};
        });
    }

    static Piece more() { return {.kind = Piece::Kind::more}; }

    Status verify(const PathEntry& entry, Sha256& digest) const {
        if (entry.sha256.empty()) return {};
        if (const auto hex = digest.finish(); hex != entry.sha256)
            return wrong(entry.path, "has the sha256 " + hex + ", and the file list says " + entry.sha256);
        return {};
    }

    Status stream(Piece next, const ReadMore& read) {
        Sha256 digest;
        const PathEntry& entry = *next.entry;
        for (;;) {
            auto bytes = TRY(read());
            if (bytes.empty()) break;
            digest.update(bytes.data(), bytes.size());
            next.content.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            TRY(deliver(std::exchange(next, more())));
        }
        TRY(verify(entry, digest));
        next.last = true;
        return deliver(std::move(next));
    }

    Status change(Piece next, const ReadMore& read) {
        const auto& entry = *next.entry;
        PrefixReplacement replacement(entry.mode, entry.placeholder, plan_.prefix, entry.path);
        const auto step = std::max<std::size_t>(piece_size * entry.placeholder.size() /
                                                    std::max(entry.placeholder.size(), plan_.prefix.size()),
                                                1);
        Sha256 packed;
        Sha256 installed;
        const auto put = [&](Result<std::string> content) -> Status {
            if (!content) content.error().what += " (" + plan_.name + ")";
            auto text = TRY(std::move(content));
            installed.update(text.data(), text.size());
            next.content += text;
            return next.content.size() < piece_size ? Status() : deliver(std::exchange(next, more()));
        };
        for (;;) {
            auto bytes = TRY(read());
            if (bytes.empty()) break;
            packed.update(bytes.data(), bytes.size());
            std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            for (; !rest.empty(); rest.remove_prefix(std::min(step, rest.size())))
                TRY(put(replacement.take(rest.substr(0, step))));
        }
        TRY(verify(entry, packed));
        TRY(put(replacement.finish()));
        next.sha256 = installed.finish();
        changed_[entry.path] = next.sha256;
        next.last = true;
        return deliver(std::move(next));
    }

    Status check_complete() const {
        for (const auto& [path, planned] : plan_.paths)
            if (planned.entry->type != PathType::directory && !came_.contains(path))
                return wrong(path, "is in the file list, but not in the archive");
        return {};
    }

    PackageStreams& streams_;
    std::size_t index_;
    PackagePlan plan_;
    std::unordered_set<std::string> came_;
    std::unordered_map<std::string, std::string> original_of_;                 ///< hard link -> original
    std::unordered_map<std::string, std::vector<const PlannedPath*>> orphans_; ///< original -> links
    std::unordered_map<std::string, std::string> changed_; ///< sha256 after replacing the prefix, by path
    bool abandoned_ = false;
};

PackageStreams::PackageStreams(unsigned threads, std::uint64_t memory, std::size_t packages,
                               std::function<PackagePlan(std::size_t)> plan)
    : plan_(std::move(plan)), queues_(packages), ahead_(std::size_t{threads} * 4) {
    threads = std::max(1U, threads);
    share_ = std::max<std::uint64_t>(memory / (threads + 1), 4U << 20U);
    for (unsigned i = 0; i < threads; ++i)
        threads_.emplace_back([this] { work(); });
}

PackageStreams::~PackageStreams() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
}

void PackageStreams::work() {
    for (;;) {
        std::size_t index = 0;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(
                lock, [this] { return stopping_ || next_ >= queues_.size() || next_ <= current_ + ahead_; });
            if (stopping_ || next_ >= queues_.size()) return;
            index = next_++;
        }
        Unpacking(*this, index).run();
    }
}

// Blocks while the package has used up its share. Finished small packages wait for the consumer, limited by
// ahead_.
bool PackageStreams::put(std::size_t index, Result<Piece> piece) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopping_ || queues_[index].bytes < share_; });
    if (stopping_) return false;
    if (piece) queues_[index].bytes += piece->content.size() + sizeof(Piece);
    queues_[index].pieces.push_back(std::move(piece));
    lock.unlock();
    changed_.notify_all();
    return true;
}

Result<Piece> PackageStreams::next(std::size_t index) {
    std::unique_lock lock(mutex_);
    if (index != current_) {
        current_ = index;
        changed_.notify_all();
    }
    auto& queue = queues_[index];
    changed_.wait(lock, [&] { return !queue.pieces.empty(); });
    auto piece = std::move(queue.pieces.front());
    queue.pieces.pop_front();
    if (piece) queue.bytes -= piece->content.size() + sizeof(Piece);
    lock.unlock();
    changed_.notify_all();
    return piece;
}

} // namespace containerize::conda

#include "image/changes.h"

#include "core/entries.h"
#include "core/fd.h"
#include "image/layers.h"
#include "image/walk.h"

#include <expected>
#include <functional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::image {

namespace {

namespace fs = std::filesystem;

bool is_after(const timespec& one, const timespec& other) {
    return std::tie(one.tv_sec, one.tv_nsec) > std::tie(other.tv_sec, other.tv_nsec);
}

bool is_directory(Layers& layers, const std::string& path) {
    const auto found = layers.find(path);
    const auto inode = found ? layers.inode(*found) : std::unexpected(found.error());
    return inode && S_ISDIR(inode->mode);
}

/// The prefix of the names by which fuse-overlayfs marks removals if it may not create devices. It refuses to
/// create files with such names, but not directories.
constexpr std::string_view note_prefix = ".wh.";

/// Whether fuse-overlayfs created this entry to mark a removal.
bool is_removal_mark(const TreeEntry& entry) {
    return entry.type == S_IFCHR ||
           (entry.type == S_IFREG && fs::path(entry.path).filename().string().starts_with(note_prefix));
}

Result<bool> has_removal_marks(Walk& walk, Reference directory) {
    const auto level = walk.enter(directory);
    if (!level) return fail_errno("cannot read the images", {}, level.error());
    const Directory& listing = level->listing();
    for (const auto& entry : listing.entries) {
        if (listing.name(entry).starts_with(note_prefix)) return true;
        if (entry.type != DT_DIR) continue;
        auto below = has_removal_marks(walk, entry.inode);
        if (!below || *below) return below;
    }
    return false;
}

/// Drops all other entries. The names of a hard-linked file are kept or dropped together.
void keep_only(std::vector<TreeEntry>& entries, const std::function<bool(const TreeEntry&)>& wanted) {
    std::vector<std::size_t> places(entries.size(), TreeEntry::npos);
    std::vector<TreeEntry> kept;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (!wanted(entries[i])) continue;
        places[i] = kept.size();
        kept.push_back(std::move(entries[i]));
        if (auto& original = kept.back().original; original != TreeEntry::npos) original = places[original];
    }
    entries = std::move(kept);
}

/// Selects the entries of a tree that differ from the images, and finds what the images have but is missing
/// in `merged`, which shows both.
class Comparison {
public:
    using IsSame = std::function<bool(const TreeEntry&)>;
    Comparison(TreeEntries& tree, fs::path merged, Layers& images, IsSame is_same)
        : tree_(tree), merged_(std::move(merged)), images_(images), is_same_(std::move(is_same)) {}

    Result<Changes> run() {
        TRY(find_removed(""));
        for (const auto& entry : tree_.entries) {
            if (is_same_(entry)) continue;
            if (entry.type == S_IFDIR) {
                TRY(look_at(entry));
            } else {
                files_.insert(entry.path);
            }
        }
        return choose();
    }

private:
    // A directory that is new, or in which something may be missing.
    Status look_at(const TreeEntry& directory) {
        if (!is_directory(images_, directory.path)) {
            files_.insert(directory.path);
            return {};
        }
        kept_.insert(directory.path); // its mode may have changed
        return find_removed(directory.path);
    }

    Status find_removed(const std::string& directory) {
        const auto before = images_.find(directory);
        if (!before) return damaged(before.error());
        const auto listing = images_.directory(*before);
        if (!listing) return damaged(listing.error());
        std::error_code failed;
        // Looking names up would not do: in a directory that took another's place, fuse-overlayfs still finds
        // the names of the layers below.
        const auto shown = names_in(merged_ / directory, failed);
        if (failed)
            return fail_errno("cannot read a directory to pack it", (merged_ / directory).string(),
                              failed.value());
        for (const auto& entry : (*listing)->entries) {
            const std::string name((*listing)->name(entry));
            const auto path = directory.empty() ? name : directory + "/" + name;
            if (!shown.contains(name)) removed_.insert(path);
        }
        return {};
    }

    // Includes the directories above each path, whose attributes would be lost otherwise.
    Changes choose() {
        for (const auto* paths : {&files_, &removed_})
            for (const auto& path : *paths)
                for (auto above = fs::path(path).parent_path(); !above.empty(); above = above.parent_path())
                    kept_.insert(above.string());
        Changes changes;
        changes.tree = std::move(tree_);
        keep_only(changes.tree.entries, [this](const TreeEntry& entry) {
            return files_.contains(entry.path) || kept_.contains(entry.path);
        });
        for (const auto& path : removed_)
            changes.tree.entries.push_back({.path = path, .type = S_IFCHR, .covers = true});
        changes.files.assign(files_.begin(), files_.end());
        changes.files.insert(changes.files.end(), removed_.begin(), removed_.end());
        return changes;
    }

    static Status damaged(int error_number) { return fail_errno("cannot read the images", {}, error_number); }

    TreeEntries& tree_;
    fs::path merged_;
    Layers& images_;
    IsSame is_same_;
    std::set<std::string> files_, removed_, kept_;
};

} // namespace

Result<Changes> changes_in_overlay(const fs::path& upper, std::span<const fs::path> images,
                                   mode_t umask_bits) {
    auto tree = TRY(list_tree(upper, umask_bits));
    auto layers = TRY(open_layers(images));
    Changes changes;
    for (const auto& entry : tree.entries)
        if (entry.type != S_IFDIR || entry.covers || !is_directory(*layers, entry.path))
            changes.files.push_back(entry.path);
    changes.tree = std::move(tree);
    return changes;
}

Result<bool> suits_fuse_overlay(std::span<const fs::path> images) {
    auto layers = TRY(open_layers(images));
    Walk walk(*layers);
    auto has = has_removal_marks(walk, layers->root());
    if (!has) return has;
    return !*has;
}

Result<Changes> changes_in_fuse_overlay(const fs::path& upper, const fs::path& merged,
                                        std::span<const fs::path> images, mode_t umask_bits) {
    auto tree = TRY(list_tree(upper, umask_bits));
    auto layers = TRY(open_layers(images));
    keep_only(tree.entries, [](const TreeEntry& entry) { return !is_removal_mark(entry); });
    return Comparison(tree, merged, *layers, [](const auto&) { return false; }).run();
}

Result<Changes> changes_since(const Snapshot& before, const fs::path& tree, std::span<const fs::path> images,
                              mode_t umask_bits) {
    auto entries = TRY(list_tree(tree, umask_bits));
    auto layers = TRY(open_layers(images));
    // The path counts, too: in a renamed directory, only the paths are new.
    const auto is_same = [&](const TreeEntry& entry) {
        const auto known = before.inodes.find(entry.path);
        return known != before.inodes.end() && known->second == entry.inode &&
               !is_after(entry.changed, before.time);
    };
    return Comparison(entries, tree, *layers, is_same).run();
}

namespace {

/// A time after everything written to the directory's filesystem so far, and before everything that will be.
Result<timespec> time_on(const fs::path& directory) {
    const auto path = directory / ".containerize-time";
    struct stat info {};
    timespec first{};
    // The clock of a filesystem advances in steps: wait for the next one, so that no file has the same time.
    for (;;) {
        const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file || fstat(file.get(), &info) != 0) return fail_errno("cannot create a file", path.string());
        unlink(path.c_str());
        if (first.tv_sec == 0) first = info.st_ctim;
        if (is_after(info.st_ctim, first)) return first;
        usleep(1000);
    }
}

} // namespace

Result<Snapshot> take_snapshot(const fs::path& tree) {
    auto entries = TRY(list_tree(tree, 0));
    Snapshot snapshot;
    for (auto& entry : entries.entries)
        snapshot.inodes.emplace(std::move(entry.path), entry.inode);
    snapshot.time = TRY(time_on(tree.parent_path()));
    return snapshot;
}

Result<WriteStats> write_changes(Changes& changes, const fs::path& image, const WriterOptions& options,
                                 const PackProgress& progress) {
    auto writer = TRY(Writer::create(image, options));
    TRY(add_entries(writer, changes.tree, Whiteouts::keep, progress));
    auto stats = writer.finish();
    if (stats) stats->left_out = std::move(changes.tree.left_out);
    return stats;
}

} // namespace containerize::image

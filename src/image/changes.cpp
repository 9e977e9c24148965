#include "image/changes.h"

#include "image/layers.h"
#include "util/fd.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

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

/// Chooses, of all entries of a tree, those that differ from the images that it was unpacked from.
class Comparison {
public:
    Comparison(TreeEntries& tree, Layers& images, timespec since)
        : tree_(tree), images_(images), since_(since) {}

    Result<Changes> run() {
        if (auto found = find_removed(""); !found) return fail(std::move(found.error()));
        for (const auto& entry : tree_.entries) {
            if (!is_after(entry.changed, since_)) continue;
            if (entry.type == S_IFDIR) {
                if (auto looked = look_at(entry); !looked) return fail(std::move(looked.error()));
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
        for (const auto& entry : (*listing)->entries) {
            const std::string name((*listing)->name(entry));
            const auto path = directory.empty() ? name : directory + "/" + name;
            struct stat info {};
            if (lstat((tree_.root / path).c_str(), &info) != 0 && errno == ENOENT) removed_.insert(path);
        }
        return {};
    }

    // With what is above each, whose attributes would be lost otherwise.
    Changes choose() {
        for (const auto* paths : {&files_, &removed_})
            for (const auto& path : *paths)
                for (auto above = fs::path(path).parent_path(); !above.empty(); above = above.parent_path())
                    kept_.insert(above.string());
        Changes changes;
        changes.tree = {.root = tree_.root,
                        .attributes_of_root = tree_.attributes_of_root,
                        .entries = {},
                        .left_out = std::move(tree_.left_out)};
        std::vector<std::size_t> places(tree_.entries.size(), TreeEntry::npos);
        for (std::size_t i = 0; i < tree_.entries.size(); ++i) {
            auto& entry = tree_.entries[i];
            if (!files_.contains(entry.path) && !kept_.contains(entry.path)) continue;
            places[i] = changes.tree.entries.size();
            // All names of a file change together.
            if (entry.original != TreeEntry::npos) entry.original = places[entry.original];
            changes.tree.entries.push_back(std::move(entry));
        }
        for (const auto& path : removed_) {
            TreeEntry whiteout;
            whiteout.path = path;
            whiteout.type = S_IFCHR;
            whiteout.covers = true;
            changes.tree.entries.push_back(std::move(whiteout));
        }
        changes.files.assign(files_.begin(), files_.end());
        changes.files.insert(changes.files.end(), removed_.begin(), removed_.end());
        return changes;
    }

    static Status damaged(int error_number) { return fail_errno("cannot read the images", {}, error_number); }

    TreeEntries& tree_;
    Layers& images_;
    timespec since_;
    std::set<std::string> files_, removed_, kept_;
};

} // namespace

Result<Changes> changes_in_overlay(const fs::path& upper, std::span<const fs::path> images,
                                   mode_t umask_bits) {
    auto tree = list_tree(upper, umask_bits);
    if (!tree) return fail(std::move(tree.error()));
    auto layers = open_layers(images);
    if (!layers) return fail(std::move(layers.error()));
    Changes changes;
    for (const auto& entry : tree->entries)
        if (entry.type != S_IFDIR || entry.covers || !is_directory(**layers, entry.path))
            changes.files.push_back(entry.path);
    changes.tree = std::move(*tree);
    return changes;
}

Result<Changes> changes_since(const fs::path& tree, std::span<const fs::path> images, timespec since,
                              mode_t umask_bits) {
    auto entries = list_tree(tree, umask_bits);
    if (!entries) return fail(std::move(entries.error()));
    auto layers = open_layers(images);
    if (!layers) return fail(std::move(layers.error()));
    return Comparison(*entries, **layers, since).run();
}

Result<timespec> time_on(const fs::path& directory) {
    const auto path = directory / ".containerize-time";
    struct stat info {};
    timespec first{};
    // The clock of a filesystem goes in steps: wait for the next, so that nothing is of the same one.
    for (;;) {
        const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file || fstat(file.get(), &info) != 0) return fail_errno("cannot make a file", path.string());
        unlink(path.c_str());
        if (first.tv_sec == 0) first = info.st_ctim;
        if (is_after(info.st_ctim, first)) return first;
        usleep(1000);
    }
}

Result<WriteStats> write_changes(Changes& changes, const fs::path& image, const WriterOptions& options,
                                 const PackProgress& progress) {
    auto writer = Writer::create(image, options);
    if (!writer) return fail(std::move(writer.error()));
    if (auto added = add_entries(*writer, changes.tree, Whiteouts::keep, progress); !added)
        return fail(std::move(added.error()));
    auto stats = writer->finish();
    if (stats) stats->left_out = std::move(changes.tree.left_out);
    return stats;
}

} // namespace containerize::image

#include "base/oci_layers.h"

#include "base/tar_stream.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "image/layers.h"
#include "util/progress.h"

#include <algorithm>
#include <climits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace containerize::base {

namespace {

constexpr std::string_view whiteout = ".wh.";
constexpr std::string_view opaque_marker = ".wh..wh..opq";
constexpr std::string_view own_whiteouts = ".wh..wh."; ///< AUFS's own files
constexpr std::size_t most_entries = 20'000'000;
constexpr std::size_t longest_name = 255;

/// The components of a path in a layer; nullopt if it leads out of the image or is too long.
std::optional<std::vector<std::string>> parts_of(std::string_view path) {
    std::vector<std::string> parts;
    if (path.size() >= PATH_MAX || path.starts_with('/')) return {};
    for (const auto part : split(path, '/')) {
        if (part.empty() || part == ".") continue;
        if (part == ".." || part.size() > longest_name) return {};
        parts.emplace_back(part);
    }
    return parts;
}

std::string_view name_or_empty(const char* name, const char* in_utf8) {
    if (name != nullptr) return name;
    return in_utf8 == nullptr ? "" : in_utf8;
}

bool is_hardlink(archive_entry* header) {
    return archive_entry_hardlink(header) != nullptr || archive_entry_hardlink_utf8(header) != nullptr;
}

/// The decision about one path.
struct Node {
    enum class Kind { directory, file, link, gone };
    Kind kind = Kind::directory;
    std::size_t layer = 0;   ///< that decided; 0 is the uppermost
    bool has_entry = false;  ///< of a directory: its attributes are known
    bool is_opaque = false;  ///< what lower layers have in it is hidden
    bool is_waiting = false; ///< a hard link to a file that was not read yet
    std::string target;      ///< of links, and of waiting hard links
    std::map<std::string, std::unique_ptr<Node>, std::less<>> children;
};

} // namespace

struct LayerMerge::State {
    State(image::Writer& image, std::uint64_t most) : writer(image), limit(most) {}

    image::Writer& writer;
    std::uint64_t limit;
    std::uint64_t content = 0, archives = 0, entries = 0;
    LeftOut left_out;
    Node root;
    std::size_t current = 0; ///< the layer being read
    const Layer* layer = nullptr;
    std::string layer_name;
    /// Waiting hard links, by the path of the file whose content they wait for.
    std::map<std::string, std::vector<std::string>, std::less<>> waiting;
    bool waits_in_this_layer = false; ///< whether any began to wait in the current layer
    /// Those of the current layer, which only affect lower ones.
    std::vector<std::string> whiteouts, opaque_directories;

    struct Entry {
        archive_entry* header;
        TarStream& tar;
        std::vector<std::string> parts;
        std::string path;
    };

    [[nodiscard]] std::unexpected<Error> hostile(std::string_view path, std::string why) const {
        return fail({.what = "the layer is unsafe",
                     .why = fmt::format("the entry '{}' {}", path.substr(0, 200), why),
                     .where = layer_name,
                     .hint = "Do not use the image. Report this to its maintainers."});
    }

    /// Takes the hard links that wait for `target`.
    std::vector<std::string> take_waiting(const std::string& target) {
        const auto found = waiting.find(target);
        if (found == waiting.end()) return {};
        auto paths = std::move(found->second);
        waiting.erase(found);
        std::erase_if(paths, [this, &target](const std::string& path) {
            Node* node = find(*parts_of(path));
            // A later entry may have replaced the link, or changed its target.
            return node == nullptr || node->target != target || !std::exchange(node->is_waiting, false);
        });
        return paths;
    }

    Node* find(const std::vector<std::string>& parts) {
        Node* node = &root;
        for (const auto& part : parts) {
            const auto found = node->children.find(part);
            if (found == node->children.end()) return nullptr;
            node = found->second.get();
        }
        return node;
    }

    /// The node at a path. It and the directories above it are made if they are missing, without an entry.
    Node& make(const std::vector<std::string>& parts) {
        Node* node = &root;
        for (const auto& part : parts) {
            auto& child = node->children[part];
            if (!child) {
                child = std::make_unique<Node>();
                child->layer = current;
            }
            node = child.get();
        }
        return *node;
    }

    /// Whether an upper layer has replaced or hidden a directory above the path. An error if this layer
    /// itself has a link or file there.
    Result<bool> is_hidden(const Entry& entry) {
        const Node* node = &root;
        for (std::size_t depth = 0; depth < entry.parts.size(); ++depth) {
            if (node->is_opaque) return true;
            if (node->kind != Node::Kind::directory) {
                if (node->layer != current) return true;
                return hostile(entry.path, node->kind == Node::Kind::link
                                               ? "is below a link of the same layer"
                                               : "is below a file of the same layer");
            }
            const auto found = node->children.find(entry.parts[depth]);
            if (found == node->children.end()) return false;
            node = found->second.get();
        }
        return false;
    }

    /// The node for an entry; null if an upper layer has decided about the path. Replaces an earlier entry of
    /// the same layer: in an archive, the last one counts.
    Result<Node*> claim(const Entry& entry, Node::Kind kind) {
        auto hidden = TRY(is_hidden(entry));
        if (hidden) return nullptr;
        if (Node* node = find(entry.parts); node != nullptr) {
            if (node->layer != current) return nullptr;
            writer.remove(entry.path);
            auto parent = entry.parts;
            parent.pop_back();
            find(parent)->children.erase(entry.parts.back());
        }
        Node& node = make(entry.parts);
        node.kind = kind;
        return &node;
    }

    image::Attributes attributes_of(const Entry& entry) {
        image::Attributes attributes;
        attributes.mode = archive_entry_perm(entry.header) & 07777U;
        attributes.mtime =
            static_cast<std::uint32_t>(std::clamp<time_t>(archive_entry_mtime(entry.header), 0, 0xFFFFFFFF));
        // Archives may have each of them twice, in two spellings. Sorted, so that equal layers give equal
        // images.
        std::map<std::string, std::string> all;
        archive_entry_xattr_reset(entry.header);
        const char* raw_name = nullptr;
        const void* value = nullptr;
        std::size_t size = 0;
        while (archive_entry_xattr_next(entry.header, &raw_name, &value, &size) == ARCHIVE_OK)
            if (raw_name != nullptr) all[raw_name] = std::string(static_cast<const char*>(value), size);
        for (auto& [name, text] : all) {
            // Those of overlayfs would hide other files.
            if (name.starts_with("user.") && !name.starts_with(image::overlay_xattrs))
                attributes.xattrs.emplace_back(name, std::move(text));
            else
                ++(name == "security.capability" ? left_out.capabilities : left_out.attributes);
        }
        return attributes;
    }

    Status take_whiteout(const Entry& entry) {
        auto hidden = TRY(is_hidden(entry));
        const auto& name = entry.parts.back();
        auto parts = entry.parts;
        parts.pop_back();
        if (name == opaque_marker) {
            if (!hidden) opaque_directories.push_back(joined(parts, "/"));
            return {};
        }
        if (name.starts_with(own_whiteouts)) return {};
        const auto removed = name.substr(whiteout.size());
        if (removed.empty() || removed == "." || removed == "..")
            return hostile(entry.path, "is a whiteout without a name");
        parts.push_back(removed);
        if (!hidden) whiteouts.push_back(joined(parts, "/"));
        return {};
    }

    void apply_whiteouts() {
        for (const auto& path : std::exchange(opaque_directories, {}))
            make(*parts_of(path)).is_opaque = true;
        for (const auto& path : std::exchange(whiteouts, {})) {
            const auto parts = *parts_of(path);
            if (Node* node = find(parts); node != nullptr)
                node->is_opaque = true;
            else
                make(parts).kind = Node::Kind::gone;
        }
    }

    Status take_directory(const Entry& entry) {
        auto hidden = TRY(is_hidden(entry));
        if (hidden) return {};
        Node* node = find(entry.parts);
        const bool is_there = node != nullptr && node->kind == Node::Kind::directory;
        if (is_there && node->layer != current && (node->has_entry || node->is_opaque)) return {};
        if (!is_there) node = TRY(claim(entry, Node::Kind::directory));
        if (node == nullptr) return {};
        node->has_entry = true;
        return writer.add_directory(entry.path, attributes_of(entry));
    }

    Status take_symlink(const Entry& entry) {
        const std::string target(
            name_or_empty(archive_entry_symlink(entry.header), archive_entry_symlink_utf8(entry.header)));
        if (target.empty() || target.size() >= PATH_MAX)
            return hostile(entry.path, "is a link with an invalid target");
        // A hard link to a symbolic link is a copy of it.
        for (const auto& path : take_waiting(entry.path)) {
            Node& copy = *find(*parts_of(path));
            copy.kind = Node::Kind::link;
            copy.target = target;
            TRY(writer.add_symlink(path, target, attributes_of(entry)));
        }
        auto node = TRY(claim(entry, Node::Kind::link));
        if (node == nullptr) return {};
        node->target = target;
        return writer.add_symlink(entry.path, target, attributes_of(entry));
    }

    /// Gives `path` the content of `target` in this layer or a lower one; it waits if that was not read yet.
    Status link(const std::string& path, const std::string& target) {
        Node& node = *find(*parts_of(path));
        const Node* original = find(*parts_of(target));
        if (original != nullptr && original->layer == current && original != &node) {
            if (original->is_waiting) return link(path, original->target);
            if (original->kind == Node::Kind::file) return writer.add_hardlink(path, target);
            if (original->kind == Node::Kind::link) return writer.add_symlink(path, original->target, {});
            return hostile(path, "is a hard link to a directory");
        }
        node.is_waiting = true;
        node.target = target;
        waiting[target].push_back(path);
        waits_in_this_layer = true;
        return {};
    }

    /// Links what waited for `target` to the content at `content_at`.
    Status link_waiting(const std::string& target, const std::string& content_at) {
        for (const auto& path : take_waiting(target))
            TRY(writer.add_hardlink(path, content_at));
        return {};
    }

    /// What waited for `path` now waits for `target`, to which `path` is a hard link itself.
    Status hand_on(const std::string& path, const std::string& target) {
        if (path == target) return {};
        const auto paths = take_waiting(path);
        // In an upper layer that is possible: both are then names of a lower layer's file.
        if (std::ranges::find(paths, target) != paths.end() && find(*parts_of(target))->layer == current)
            return hostile(path, "is a hard link to a hard link to itself");
        for (const auto& waits : paths)
            TRY(link(waits, target));
        return {};
    }

    Status take_hardlink(const Entry& entry) {
        std::string_view raw =
            name_or_empty(archive_entry_hardlink(entry.header), archive_entry_hardlink_utf8(entry.header));
        // Some tools write an absolute path in the image.
        while (raw.starts_with('/'))
            raw.remove_prefix(1);
        const auto parts = parts_of(raw);
        if (!parts || parts->empty())
            return hostile(entry.path, "is a hard link that points outside the image");
        const auto target = joined(*parts, "/");
        TRY(hand_on(entry.path, target));
        if (target == entry.path) return {};
        auto node = TRY(claim(entry, Node::Kind::file));
        if (node == nullptr) return {};
        return link(entry.path, target);
    }

    Status write_content(Entry& entry, const std::string& path) {
        const auto size =
            static_cast<std::uint64_t>(std::max<la_int64_t>(0, archive_entry_size(entry.header)));
        if (size > limit - content)
            return hostile(entry.path,
                           fmt::format("has a declared size of {}, and the limit for an image is {} "
                                       "(`base_limit` in the configuration)",
                                       human_bytes(size), human_bytes(limit)));
        content += size;
        TRY(writer.begin_file(path, attributes_of(entry)));
        for (std::uint64_t left = size; left > 0;) {
            auto bytes = TRY(entry.tar.read(left));
            left -= bytes.size();
            TRY(writer.append(bytes));
            if (interrupted()) return fail_interrupted();
        }
        return writer.end_file();
    }

    Status take_file(Entry& entry) {
        auto node = TRY(claim(entry, Node::Kind::file));
        if (node == nullptr) return serve_waiting(entry);
        TRY(write_content(entry, entry.path));
        return link_waiting(entry.path, entry.path);
    }

    /// The path is hidden, but hard links to its file may not be.
    Status serve_waiting(Entry& entry) {
        const auto paths = take_waiting(entry.path);
        if (paths.empty()) return {};
        TRY(write_content(entry, paths.front()));
        for (std::size_t i = 1; i < paths.size(); ++i)
            TRY(writer.add_hardlink(paths[i], paths.front()));
        return {};
    }

    Status take(Entry& entry) {
        if (!entry.parts.empty() && entry.parts.back().starts_with(whiteout)) return take_whiteout(entry);
        if (is_hardlink(entry.header)) return take_hardlink(entry);
        switch (archive_entry_filetype(entry.header)) {
        case AE_IFDIR:
            return take_directory(entry);
        case AE_IFLNK:
            return take_symlink(entry);
        case AE_IFREG:
            return take_file(entry);
        default:
            ++left_out.devices;
            return {};
        }
    }

    Status read(bool for_waiting_links) {
        auto tar = TRY(TarStream::open(*layer, limit - archives));
        for (;;) {
            auto header = TRY(tar->next());
            if (header == nullptr) break;
            if (interrupted()) return fail_interrupted();
            const auto name =
                name_or_empty(archive_entry_pathname(header), archive_entry_pathname_utf8(header));
            if (++entries > most_entries) return hostile(name, "is past the limit of twenty million entries");
            auto parts = parts_of(name);
            if (!parts || name.empty()) return hostile(name, "points outside the image");
            // A file must have a name; a directory without one is the root.
            if (parts->empty() && (archive_entry_filetype(header) != AE_IFDIR || is_hardlink(header)))
                return hostile(name, "has no name");
            auto path = joined(*parts, "/");
            Entry entry{.header = header, .tar = *tar, .parts = std::move(*parts), .path = std::move(path)};
            if (!for_waiting_links)
                TRY(take(entry));
            else if (archive_entry_filetype(header) == AE_IFREG && !is_hardlink(header))
                TRY(serve_waiting(entry));
        }
        TRY(tar->verify());
        if (!for_waiting_links) archives += tar->bytes();
        return {};
    }
};

LayerMerge::LayerMerge(image::Writer& writer, std::uint64_t limit)
    : state_(std::make_unique<State>(writer, limit)) {}
LayerMerge::~LayerMerge() = default;

Status LayerMerge::add(const Layer& layer) {
    auto& state = *state_;
    state.layer = &layer;
    state.layer_name = layer.name;
    state.waits_in_this_layer = false;
    TRY(state.read(false));
    // The file of a hard link may have been read already, but skipped because an upper layer hides it.
    if (state.waits_in_this_layer && !state.waiting.empty()) TRY(state.read(true));
    state.apply_whiteouts();
    ++state.current;
    return {};
}

Status LayerMerge::finish() {
    for (const auto& [target, paths] : state_->waiting)
        for (const auto& path : paths)
            if (const Node* node = state_->find(*parts_of(path)); node != nullptr && node->is_waiting)
                return state_->hostile(path, "is a hard link to '" + target + "', which is in no layer");
    return {};
}

const LayerMerge::LeftOut& LayerMerge::left_out() const {
    return state_->left_out;
}

} // namespace containerize::base

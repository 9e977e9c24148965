// Node ids for the names of hard-linked files.
#pragma once

#include "image/reader.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace containerize::fuse {

/// Gives each name of a hard-linked file a node of its own. fuse-overlayfs takes names with one inode for one
/// file, and loses what is written to it when the name under which it keeps the file is removed, or when it
/// is started again. With the kernel's overlay, too, a name that is changed parts from the others.
/// Thread-safe.
class SeparateNames {
public:
    /// Always the same node for the same name, and never that of a reference of Layers.
    std::uint64_t node(image::Reference directory, std::string_view name, image::Reference file);
    [[nodiscard]] static bool is_node(std::uint64_t id) { return id >= first; }
    /// The file of a node; nullopt for a node that was never assigned.
    [[nodiscard]] std::optional<image::Reference> file(std::uint64_t node) const;

private:
    static constexpr std::uint64_t first = 1ULL << 63U; ///< above the references of Layers

    mutable std::mutex mutex_;
    std::map<std::pair<image::Reference, std::string>, std::uint64_t> nodes_;
    std::vector<image::Reference> files_; ///< indexed by node - first
};

} // namespace containerize::fuse

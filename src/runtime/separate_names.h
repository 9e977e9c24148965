// Nodes of the names of files that have several.
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

namespace containerize::runtime {

/// fuse-overlayfs takes names with one inode for one file of its own, and loses what is written to it when
/// the name under which it keeps that goes, or when it is started again. So the files below it have one name
/// each, as by the kernel's overlay a name that is changed parts from the others. Thread-safe.
class SeparateNames {
public:
    /// The same for the same name, and no reference of Layers.
    std::uint64_t node(image::Reference directory, std::string_view name, image::Reference file);
    [[nodiscard]] static bool is_node(std::uint64_t id) { return id >= first; }
    /// None for a node that was never given out.
    [[nodiscard]] std::optional<image::Reference> file(std::uint64_t node) const;

private:
    static constexpr std::uint64_t first = 1ULL << 63U; ///< Layers has fewer images than that

    mutable std::mutex mutex_;
    std::map<std::pair<image::Reference, std::string>, std::uint64_t> nodes_;
    std::vector<image::Reference> files_; ///< by node, less the first
};

} // namespace containerize::runtime

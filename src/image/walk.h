// Walking a whole tree, safely even in images whose directories contain themselves.
#pragma once

#include "image/layers.h"

#include <cstddef>
#include <expected>
#include <functional>
#include <set>
#include <string>
#include <utility>

namespace containerize::image {

/// In a tree, each directory is in one place, and none is deeper than a path can be. Any other image is
/// refused, because it could make a walk endless.
class Walk {
public:
    explicit Walk(Layers& layers) : layers_(layers) {}
    Walk(const Walk&) = delete;
    Walk& operator=(const Walk&) = delete;

    /// A directory; the walk is in it as long as this object lives.
    class [[nodiscard]] Level {
    public:
        Level(Walk& walk, LoadingCache<Directory>::Pointer listing)
            : walk_(&walk), listing_(std::move(listing)) {
            ++walk.depth_;
        }
        Level(Level&& other) noexcept
            : walk_(std::exchange(other.walk_, nullptr)), listing_(std::move(other.listing_)) {}
        Level& operator=(Level&&) = delete;
        ~Level() {
            if (walk_ != nullptr) --walk_->depth_;
        }
        [[nodiscard]] const Directory& listing() const { return *listing_; }

    private:
        Walk* walk_;
        LoadingCache<Directory>::Pointer listing_;
    };
    /// EIO if the directory is too deep, or was entered before.
    std::expected<Level, int> enter(Reference directory) {
        if (depth_ > deepest_directory || !entered_.insert(directory).second) return std::unexpected(EIO);
        auto listing = TRY(layers_.directory(directory));
        return Level(*this, std::move(listing));
    }

private:
    Layers& layers_;
    std::set<Reference> entered_;
    std::size_t depth_ = 0;
};

/// Calls `visit` with each regular file that the layers show and its path, relative to the root, until a call
/// fails.
Status for_each_file(Layers& layers,
                     const std::function<Status(Reference file, const std::string& path)>& visit);

} // namespace containerize::image

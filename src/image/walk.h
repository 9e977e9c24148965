// Through a whole tree, from its root down: for images in which directories may hold themselves.
#pragma once

#include "image/layers.h"

#include <cerrno>
#include <cstddef>
#include <expected>
#include <set>
#include <utility>

namespace containerize::image {

/// Each directory of a tree has one place in it, and none is so deep that it has no path. An image in which
/// that is not so would take whoever goes through it as long, and as far down, as it likes.
class Walk {
public:
    explicit Walk(Layers& layers) : layers_(layers) {}
    Walk(const Walk&) = delete;
    Walk& operator=(const Walk&) = delete;

    /// A directory that the walk is in as long as this lives.
    class Level {
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
    /// EIO where it cannot be the tree's, or is there a second time.
    std::expected<Level, int> enter(Reference directory) {
        if (depth_ > deepest_directory || !entered_.insert(directory).second) return std::unexpected(EIO);
        auto listing = layers_.directory(directory);
        if (!listing) return std::unexpected(listing.error());
        return Level(*this, std::move(*listing));
    }

private:
    Layers& layers_;
    std::set<Reference> entered_;
    std::size_t depth_ = 0;
};

} // namespace containerize::image

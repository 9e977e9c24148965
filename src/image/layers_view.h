// The images of an installation as a tree of files, read without mounting them.
#pragma once

#include "image/layers.h"
#include "image/tree_view.h"

#include <memory>
#include <utility>

namespace containerize::image {

class LayersView : public TreeView {
public:
    /// `layers` must outlive the view.
    explicit LayersView(Layers& layers) : layers_(layers) {}
    /// Owns `layers`.
    explicit LayersView(std::unique_ptr<Layers> layers) : owned_(std::move(layers)), layers_(*owned_) {}

protected:
    [[nodiscard]] mode_t mode_of(const std::string& path) const override;
    [[nodiscard]] std::string target_of(const std::string& link) const override;
    [[nodiscard]] std::vector<std::string> names_in(const std::string& directory) const override;
    [[nodiscard]] std::string bytes_of(const std::string& file, std::uint64_t offset,
                                       std::size_t size) const override;

private:
    std::unique_ptr<Layers> owned_; ///< may be null
    Layers& layers_;                ///< thread-safe
};

} // namespace containerize::image

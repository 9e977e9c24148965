// A root filesystem to look things up in, whether it is in images or on disk. Nothing in it leads out of it.
#pragma once

#include "image/layers.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace containerize::image {

class TreeView {
public:
    enum class Type { missing, directory, file, link, other };

    virtual ~TreeView() = default;
    /// Of what has this very path, absolute or relative to the root, without links in it; a link is a link.
    [[nodiscard]] virtual Type type(std::string_view path) const = 0;
    /// Of a link at such a path.
    [[nodiscard]] virtual std::string link_target(std::string_view path) const = 0;

    /// `path` with all links followed as they lead inside, also the last: "/var/run/x" is "/run/x" where
    /// /var/run is a link. What is missing keeps its name. Empty where links lead in a circle.
    [[nodiscard]] std::string resolve(std::string_view path) const;
};

/// Of images. `layers` must outlive it.
class LayersView : public TreeView {
public:
    explicit LayersView(Layers& layers) : layers_(layers) {}
    [[nodiscard]] Type type(std::string_view path) const override;
    [[nodiscard]] std::string link_target(std::string_view path) const override;

private:
    Layers& layers_;
};

/// Of a directory on disk.
class DirectoryView : public TreeView {
public:
    explicit DirectoryView(std::filesystem::path root) : root_(std::move(root)) {}
    [[nodiscard]] Type type(std::string_view path) const override;
    [[nodiscard]] std::string link_target(std::string_view path) const override;

private:
    [[nodiscard]] std::filesystem::path whole(std::string_view path) const;
    std::filesystem::path root_;
};

} // namespace containerize::image

// A tree of files as a process with this root would see it: a host, a container's image, an environment.
#pragma once

#include "core/error.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace containerize::image {

/// Paths are absolute, "/" being the root of the tree; links are followed within the tree and never leave it.
/// What cannot be read counts as missing, because callers can do without.
class TreeView {
public:
    enum class Kind { missing, file, directory, link, other };

    virtual ~TreeView() = default;

    /// The path without links to which `path` leads; nullopt if it is missing.
    [[nodiscard]] std::optional<std::string> resolve(std::string_view path) const;
    /// The same, but missing parts keep their names; nullopt if links lead in a circle.
    [[nodiscard]] std::optional<std::string> resolve_missing(std::string_view path) const;
    /// The kind of what `path` leads to; never `link`.
    [[nodiscard]] Kind kind(std::string_view path) const;
    [[nodiscard]] bool exists(std::string_view path) const { return kind(path) != Kind::missing; }
    /// The names in a directory, sorted; none if it is no directory.
    [[nodiscard]] std::vector<std::string> list(std::string_view path) const;
    /// At most `size` bytes of a regular file from `offset` on; fewer, or none, at its end.
    [[nodiscard]] std::string read(std::string_view path, std::uint64_t offset, std::size_t size) const;
    /// The beginning of a file, also of the kernel's files, which report no size.
    [[nodiscard]] std::string text(std::string_view path, std::size_t limit = std::size_t{1} << 20U) const {
        return read(path, 0, limit);
    }

    /// Whether `path` leads to a file that anybody may execute.
    [[nodiscard]] bool is_program(std::string_view path) const;
    /// These follow links only in the directories of `path`, so that a link is a link. Missing parts keep
    /// their names.
    [[nodiscard]] std::optional<std::string> resolve_parent(std::string_view path) const;
    [[nodiscard]] Kind own_kind(std::string_view path) const;

protected:
    // For paths in which no directory is a link.
    [[nodiscard]] virtual mode_t mode_of(const std::string& path) const = 0; ///< with the type; 0: missing
    [[nodiscard]] virtual std::string target_of(const std::string& link) const = 0;
    [[nodiscard]] virtual std::vector<std::string> names_in(const std::string& directory) const = 0;
    [[nodiscard]] virtual std::string bytes_of(const std::string& file, std::uint64_t offset,
                                               std::size_t size) const = 0;

private:
    [[nodiscard]] Kind kind_of(const std::string& path) const;
    [[nodiscard]] std::optional<std::string> follow(std::string_view path, bool may_be_missing) const;
};

/// The tree of a directory; "/" is this machine's.
class DirectoryView : public TreeView {
public:
    explicit DirectoryView(const std::filesystem::path& root);

protected:
    [[nodiscard]] mode_t mode_of(const std::string& path) const override;
    [[nodiscard]] std::string target_of(const std::string& link) const override;
    [[nodiscard]] std::vector<std::string> names_in(const std::string& directory) const override;
    [[nodiscard]] std::string bytes_of(const std::string& file, std::uint64_t offset,
                                       std::size_t size) const override;

private:
    [[nodiscard]] std::string real(const std::string& path) const { return root_ + path; }

    std::string root_; ///< without a trailing '/'
};

/// "libcuda.so.1" of "/usr/lib/libcuda.so.1".
std::string_view name_of(std::string_view path);
/// "/usr/lib" of "/usr/lib/libcuda.so.1".
std::string_view directory_of(std::string_view path);

} // namespace containerize::image

// Reads package archives (`.conda`, `.tar.bz2`) without unpacking them to disk and without trusting them.
#pragma once

#include "core/error.h"
#include "core/open_file.h"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace containerize::conda {

enum class EntryType { file, directory, symlink, hardlink };

struct ArchiveEntry {
    std::string path; ///< relative, without "." and ".."; other paths are refused
    EntryType type = EntryType::file;
    mode_t mode = 0644; ///< permission bits
    std::uint32_t mtime = 0;
    std::uint64_t size = 0;
    std::string target; ///< of links: as stored for symlinks, a path in the archive for hard links
};

/// Returns the next piece of a file's content; empty at the end.
using ReadMore = std::function<Result<std::span<const std::byte>>()>;
using VisitEntry = std::function<Status(const ArchiveEntry& entry, const ReadMore& read)>;

class PackageArchive {
public:
    /// Chooses the format by the file name's extension. `name` is the package's name for messages. Several
    /// threads may read the same file.
    static Result<PackageArchive> open(const OpenFile& file, std::string name);

    /// Returns the files of "info/" that a linker needs ("paths.json"), by name. Fails if they are too large.
    [[nodiscard]] Result<std::map<std::string, std::string>> info() const;
    /// Visits everything outside "info/", in the archive's order. Fails on a path that leads out of the
    /// package, a device, and other entries that no package has. The caller must check where symlinks lead.
    [[nodiscard]] Status payload(const VisitEntry& visit) const;

private:
    enum class Format { conda, tar_bz2 };
    PackageArchive(OpenFile file, std::string name, Format format)
        : file_(std::move(file)), name_(std::move(name)), format_(format) {}
    [[nodiscard]] Status read(std::string_view part, const VisitEntry& visit) const;

    OpenFile file_;
    std::string name_;
    Format format_;
};

} // namespace containerize::conda

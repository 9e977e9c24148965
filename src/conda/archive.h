// Reading package archives, `.conda` and `.tar.bz2`, without unpacking them and without trusting them.
#pragma once

#include "util/error.h"
#include "util/open_file.h"

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
    std::string path; ///< relative, without "." and "..": refused before anybody sees it
    EntryType type = EntryType::file;
    mode_t mode = 0644; ///< permission bits
    std::uint32_t mtime = 0;
    std::uint64_t size = 0;
    std::string target; ///< of links: as it stands for symbolic ones, a path of the archive for hard ones
};

/// Hands out a file's content piece by piece; empty at its end.
using ReadMore = std::function<Result<std::span<const std::byte>>()>;
using VisitEntry = std::function<Status(const ArchiveEntry& entry, const ReadMore& read)>;

class PackageArchive {
public:
    /// By the ending of the file's name. `name` is the package's, for messages. Several threads may read the
    /// same file.
    static Result<PackageArchive> open(const OpenFile& file, std::string name);

    /// The files of "info/" that a linker needs ("paths.json"), by name. Together they are limited in size.
    [[nodiscard]] Result<std::map<std::string, std::string>> info() const;
    /// Everything else, in the archive's order. A path that leads out of the package, a device, and anything
    /// else that no package has, is an error that names it. Where symbolic links lead is the caller's to
    /// judge.
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

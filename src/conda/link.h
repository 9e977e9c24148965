// Installing packages: from their archives straight into an image, without files on disk.
#pragma once

#include "conda/package_info.h"
#include "conda/package_record.h"
#include "image/writer.h"
#include "util/error.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::conda {

struct PackageToLink {
    PackageRecord record;
    std::filesystem::path archive;
    std::vector<std::string> requested; ///< the specs that asked for it; none for what others need
};

struct LinkOptions {
    std::string prefix;
    unsigned jobs = 1;                                ///< threads that decompress
    std::uint64_t memory = std::uint64_t{256} << 20U; ///< bytes that wait to be written, at most
    mode_t umask_bits = 022;
    std::uint32_t time = 0;              ///< of records and entry points, seconds since 1970
    std::optional<std::uint32_t> latest; ///< later times of files will be clamped to it by the writer
    std::string command_line;            ///< for conda-meta/history
    std::string tool_version;
    /// Where packages join others: the Python that is among those, the history so far, and what went.
    std::optional<PackageRecord> python;
    std::string earlier_history;
    std::vector<PackageRecord> removed;
};

struct LinkScript {
    PackageRecord package;
    std::string path;    ///< relative to the prefix: "bin/.NAME-post-link.sh"
    bool before = false; ///< pre-link, which is for what must happen before the files are there
};

struct Linked {
    std::vector<PackageRecord> records;  ///< completed from the packages' own, in link order
    std::string python_version;          ///< empty without Python
    std::string python_name;             ///< "python3.11"
    std::string site_packages;           ///< "lib/python3.11/site-packages"
    std::vector<std::string> to_compile; ///< .py files without fitting byte-code, relative to the prefix
    std::vector<LinkScript> scripts;
    std::vector<std::string> warnings;
    std::uint64_t files = 0, bytes = 0;
};

/// What the archives say of themselves, in the order of `packages`, with the records completed by it: lists
/// of people know little more than URLs.
Result<std::vector<PackageInfo>> read_packages(const std::vector<PackageToLink>& packages, unsigned jobs);

/// `packages` in link order (dependencies first). Where two packages have the same file, the later one's
/// stays, with a warning. Checksums and sizes of all files are verified. conda-meta is written as conda has
/// it, without paths of this machine. The same packages give the same entries whatever the number of threads.
/// `infos` are those of read_packages(); `progress` gets bytes of content written.
Result<Linked> link_packages(const std::vector<PackageToLink>& packages, std::vector<PackageInfo> infos,
                             const LinkOptions& options, image::Writer& writer,
                             const std::function<void(std::uint64_t)>& progress);

} // namespace containerize::conda

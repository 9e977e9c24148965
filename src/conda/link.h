// Installs packages into an image from their own images, without unpacking them to disk.
#pragma once

#include "conda/package_info.h"
#include "conda/package_record.h"
#include "core/error.h"
#include "image/reader.h"
#include "image/writer.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace containerize::conda {

struct PackageToLink {
    PackageRecord record;
    std::shared_ptr<image::Reader> image; ///< made by pack_package()
    std::string sha256;                   ///< of the archive
    std::string origin;                   ///< where the package is from, for messages
    std::vector<std::string> requested;   ///< the specs that requested it; empty for dependencies
};

struct LinkOptions {
    std::string prefix = {};
    unsigned jobs = 1; ///< threads
    mode_t umask_bits = 022;
    std::uint32_t time = 0;                   ///< mtime of records and entry points, in seconds since 1970
    std::optional<std::uint32_t> latest = {}; ///< the writer clamps mtimes of files to this
    std::string command_line = {};            ///< for conda-meta/history
    std::string tool_version = {};
    /// For adding to an environment: its Python, its history so far, and the packages that were removed.
    std::optional<PackageRecord> python = {};
    std::string earlier_history = {};
    std::vector<PackageRecord> removed = {};
    std::filesystem::path tree = {}; ///< the environment's path; empty for a new one
};

struct LinkScript {
    PackageRecord package;
    std::string path;    ///< relative to the prefix: "bin/.NAME-post-link.sh"
    bool before = false; ///< a pre-link script, to be run before the files exist
};

/// A Python module of a package without byte-code.
struct Module {
    std::size_t package; ///< its index
    std::string path;    ///< in the package: "site-packages/a.py"
    std::string target;  ///< relative to the prefix
};

struct Linked {
    std::vector<PackageRecord> records;  ///< completed from the packages, in link order
    std::optional<std::size_t> python;   ///< which of the packages it is
    std::string python_version;          ///< empty without Python
    std::string python_name;             ///< "python3.11"
    std::string site_packages;           ///< "lib/python3.11/site-packages"
    std::vector<std::string> to_compile; ///< .py files without valid byte-code, relative to the prefix
    std::vector<Module> modules;         ///< those of `to_compile` that are the same in each environment
    std::vector<LinkScript> scripts;
    std::vector<std::string> warnings;
    std::uint64_t files = 0, bytes = 0;
};

/// Reads the packages' metadata, in their order. Completes their records, since explicit lists contain little
/// more than URLs.
Result<std::vector<PackageInfo>> read_packages(const std::vector<PackageToLink>& packages, unsigned jobs);

/// Links `packages`, given in link order (dependencies first). If two have the same file, the later one wins,
/// with a warning. Writes conda-meta like conda, but without paths of this machine. The output does not
/// depend on the number of threads. `infos` is the result of read_packages(); `progress` gets the bytes of
/// content linked. The images must have the compressor and the block size of `writer`.
Result<Linked> link_packages(const std::vector<PackageToLink>& packages, std::vector<PackageInfo> infos,
                             const LinkOptions& options, image::Writer& writer,
                             const std::function<void(std::uint64_t)>& progress);

} // namespace containerize::conda

// Reads wheels without unpacking them to disk and without trusting them.
#pragma once

#include "core/error.h"
#include "core/open_file.h"
#include "wheel/dist_info.h"
#include "wheel/zip.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace containerize::wheel {

struct WheelEntry {
    Place place;
    mode_t mode = 0644; ///< 0755 if the archive lets anybody execute it
    std::uint32_t mtime = 0;
    std::uint64_t size = 0;
};

/// Returns the next piece of a file's content; empty at the end.
using ReadMore = std::function<Result<std::span<const std::byte>>()>;
using VisitEntry = std::function<Status(const WheelEntry& entry, const ReadMore& read)>;

class WheelArchive {
public:
    /// Reads the names and sizes of all files, and .dist-info. Refuses what no installer should install.
    /// `name` is the wheel's file name: "six-1.16.0-py2.py3-none-any.whl". Several threads may read the same
    /// file.
    static Result<WheelArchive> open(const OpenFile& file, std::string name);

    [[nodiscard]] const DistInfo& dist_info() const { return info_; }
    [[nodiscard]] std::uint64_t unpacked_size() const { return unpacked_size_; } ///< of all files together

    /// Visits all files in the archive's order, each place once. Content that differs from the archive's
    /// sizes and checksums is an error. Where RECORD is wrong, pip installs the wheel, too: returns warnings.
    [[nodiscard]] Result<std::vector<std::string>> payload(const VisitEntry& visit) const;

private:
    WheelArchive(OpenFile file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

    OpenFile file_;
    std::string name_;
    DistInfo info_;
    std::vector<std::pair<ZipMember, Place>> files_;
    std::uint64_t unpacked_size_ = 0;
};

} // namespace containerize::wheel

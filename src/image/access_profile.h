// Which parts of an image a run of programs reads: recorded once, and prefetched by the next session.
#pragma once

#include "core/error.h"
#include "core/fd.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace containerize::image {

/// A compressed block of an image. The size field is squashfs's: bit 24 means stored uncompressed.
struct ProfileBlock {
    std::uint64_t start = 0;
    std::uint32_t size_field = 0;

    [[nodiscard]] std::uint64_t stored() const { return size_field & 0xFFFFFFU; }
    [[nodiscard]] std::uint64_t end() const { return start + stored(); }
    bool operator==(const ProfileBlock&) const = default;
};

struct Profile {
    std::string image;                ///< sha256 of the image's file, in hexadecimal
    std::vector<ProfileBlock> blocks; ///< in the order of their first use, without duplicates
    [[nodiscard]] std::uint64_t bytes() const;
};

/// The profile of an image is beside it, with this appended to the name.
inline constexpr std::string_view profile_suffix = ".profile";
inline constexpr std::size_t largest_profile = 16U << 20U; ///< bytes of its text
inline constexpr std::size_t most_profile_blocks = 1U << 20U;

/// Parses a profile, which is a hint that anybody may have written: refuses whatever to_text() would not have
/// written. Whether the image has these blocks is for its reader to check.
Result<Profile> parse_profile(std::string_view text, const std::filesystem::path& file);
std::string to_text(const Profile& profile);

/// The blocks of `first`, then those that only `second` has; both are of one image.
Profile merged(Profile first, const Profile& second);

/// A part of an image that one request reads.
struct Extent {
    std::uint64_t begin = 0, end = 0;
    std::size_t first = 0; ///< number of its earliest block in the profile
};
struct RequestShape {
    std::uint64_t size = 4U << 20U;  ///< most bytes of a request
    std::uint64_t gap = 256U << 10U; ///< most unwanted bytes between two blocks for one request
    std::uint64_t alignment = 0;     ///< requests do not cross a multiple of it; 0: no alignment
};
/// The requests that read a profile's blocks, in the order of the blocks' first use.
std::vector<Extent> requests_for(const std::vector<ProfileBlock>& blocks, const RequestShape& shape);

/// Appends a line "IMAGE<tab>START<tab>SIZE" to a file for each block at its first use. Each line is written
/// at once, so that the successor of a killed server can continue the file. Thread-safe.
class Recorder {
public:
    explicit Recorder(Fd file) : file_(std::move(file)) {}
    void note(const std::string& image, const ProfileBlock& block);

private:
    Fd file_;
    std::mutex mutex_;
    std::set<std::pair<std::string, std::uint64_t>> known_;
};

/// Parses what recorders have written: the blocks of each image, by its path.
Result<std::map<std::string, std::vector<ProfileBlock>>> parse_record(std::string_view text,
                                                                      const std::filesystem::path& file);

} // namespace containerize::image

// What of an image a run of programs reads: recorded once, and read ahead by the next session.
#pragma once

#include "util/error.h"
#include "util/fd.h"

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

/// A compressed block as it lies in an image. The size field is squashfs's: bit 24 set means stored as it is.
struct ProfileBlock {
    std::uint64_t start = 0;
    std::uint32_t size_field = 0;

    [[nodiscard]] std::uint64_t stored() const { return size_field & 0xFFFFFFU; }
    [[nodiscard]] std::uint64_t end() const { return start + stored(); }
    bool operator==(const ProfileBlock&) const = default;
};

struct Profile {
    std::string image;                ///< sha256 of the image's file, in hexadecimal
    std::vector<ProfileBlock> blocks; ///< in the order in which they were wanted first; none twice
    [[nodiscard]] std::uint64_t bytes() const;
};

/// Beside the image's file, under its name and this.
inline constexpr std::string_view profile_suffix = ".profile";
inline constexpr std::size_t largest_profile = 16U << 20U; ///< bytes of its text
inline constexpr std::size_t most_profile_blocks = 1U << 20U;

/// A profile is a hint that anybody may have written: whatever is not exactly what to_text() writes is
/// refused. Whether the blocks are those of the image is for the reader to see.
Result<Profile> parse_profile(std::string_view text, const std::filesystem::path& file);
std::string to_text(const Profile& profile);

/// The blocks of `first`, then what only `second` has; both are of one image.
Profile merged(Profile first, const Profile& second);

/// A part of an image, to be read by one request.
struct Extent {
    std::uint64_t begin = 0, end = 0;
    std::size_t first = 0; ///< the earliest of its blocks in the profile
};
struct RequestShape {
    std::uint64_t size = 4U << 20U;  ///< of a request, at most
    std::uint64_t gap = 256U << 10U; ///< what is not wanted is read along up to this
    std::uint64_t alignment = 0;     ///< requests cross no multiple of it; 0: it does not matter
};
/// The requests that read a profile's blocks, in the order in which they are wanted.
std::vector<Extent> requests_for(const std::vector<ProfileBlock>& blocks, const RequestShape& shape);

/// Appends each block that is wanted for the first time to a file, as a line "IMAGE<tab>START<tab>SIZE".
/// Whole lines are written at once, so that a server's successor goes on where it was killed. Thread-safe.
class Recorder {
public:
    explicit Recorder(Fd file) : file_(std::move(file)) {}
    void note(const std::string& image, const ProfileBlock& block);

private:
    Fd file_;
    std::mutex mutex_;
    std::set<std::pair<std::string, std::uint64_t>> known_;
};

/// What recorders have written: the blocks of each image, by its path.
Result<std::map<std::string, std::vector<ProfileBlock>>> parse_record(std::string_view text,
                                                                      const std::filesystem::path& file);

} // namespace containerize::image

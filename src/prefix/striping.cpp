#include "prefix/striping.h"

#include "core/filesystem.h"
#include "util/log.h"

#include <algorithm>

namespace containerize::prefix {

namespace fs = std::filesystem;

unsigned stripes_for(std::uint64_t bytes) {
    return static_cast<unsigned>(std::clamp<std::uint64_t>(bytes >> 26U, 1, 16));
}

bool make_striped_directory(const fs::path& directory, unsigned stripes, const Environment& environment) {
    const auto lfs = find_program("lfs", search_path(environment));
    if (!lfs) return false;
    if (!make_directory(directory)) return false;
    const auto done =
        run({.argv = {*lfs, "setstripe", "-c", std::to_string(stripes), "-S", "16M", directory.string()},
             .environment = environment});
    if (done && done->ok()) return true;
    log::detail("the image is not striped: " + (done ? "lfs failed" : to_string(done.error())));
    std::error_code failed;
    fs::remove(directory, failed);
    return false;
}

} // namespace containerize::prefix

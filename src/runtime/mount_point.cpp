#include "runtime/mount_point.h"

#include <sys/stat.h>

namespace containerize::runtime {

Status make_mount_point(const std::filesystem::path& path) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
    return fail({.what = "TODO", .why = {}, .where = path.string(), .hint = {}});
}

} // namespace containerize::runtime

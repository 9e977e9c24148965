#include "config/configuration.h"
#include "core/ownership.h"

#include <sys/stat.h>

namespace containerize::config {

Status check_trusted(const std::filesystem::path& file) {
    if (struct stat info{}; stat(file.c_str(), &info) != 0)
        return fail_errno("cannot read the configuration", file.string());
    const auto foreign = find_foreign(std::filesystem::absolute(file).string());
    if (!foreign) return {};
    const bool of_another = foreign->why.find("another user") != std::string::npos;
    return fail_input("this configuration is not used",
                      (foreign->path == file ? "" : foreign->path + ": ") + foreign->why, file.string(),
                      of_another ? "Use a copy that you own."
                                 : "Remove that permission: chmod go-w " + foreign->path);
}

} // namespace containerize::config

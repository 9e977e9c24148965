// In a file of its own, so that static programs can use it without the rest of process.h.
#include "core/text.h"
#include "util/process.h"

#include <sys/stat.h>
#include <unistd.h>

namespace containerize {

std::optional<std::filesystem::path>
find_program(std::string_view name, std::string_view path,
             const std::function<bool(const std::filesystem::path&)>& accept) {
    for (const std::filesystem::path directory : split(path, ':')) {
        // An empty or relative element means the working directory, where nothing should run by accident.
        if (!directory.is_absolute()) continue;
        auto candidate = directory / name;
        struct stat info {};
        if (stat(candidate.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
        if (access(candidate.c_str(), X_OK) != 0) continue;
        if (!accept || accept(candidate)) return candidate;
    }
    return std::nullopt;
}

} // namespace containerize

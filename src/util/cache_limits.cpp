#include "util/cache_limits.h"

#include <algorithm>

namespace containerize {

std::vector<CachedFile> files_to_remove(std::vector<CachedFile> files, const CacheLimits& limits,
                                        std::int64_t now, std::optional<std::int64_t> in_use_since) {
    std::uint64_t total = 0;
    for (const auto& file : files)
        total += file.bytes;
    std::ranges::stable_sort(files, {}, &CachedFile::last_use);
    const auto has_to_go = [&](const CachedFile& file) {
        const bool is_old =
            limits.age &&
            file.last_use < now - std::chrono::duration_cast<std::chrono::seconds>(*limits.age).count();
        return is_old || (limits.bytes && total > *limits.bytes);
    };
    std::vector<CachedFile> chosen;
    for (auto& file : files) {
        if (in_use_since && file.last_use >= *in_use_since) break;
        if (!has_to_go(file)) break;
        total -= file.bytes;
        chosen.push_back(std::move(file));
    }
    return chosen;
}

} // namespace containerize

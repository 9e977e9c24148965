#include "conda/links.h"

#include "core/text.h"

#include <deque>
#include <vector>

namespace containerize::conda {

namespace {

/// The kernel's limit.
constexpr int most_links = 40;

std::deque<std::string> parts_of(std::string_view path) {
    std::deque<std::string> parts;
    for (const auto part : split(path, '/'))
        if (!part.empty() && part != ".") parts.emplace_back(part);
    return parts;
}

} // namespace

std::optional<std::string> follow(std::string_view directory, std::string_view target,
                                  std::string_view prefix, const LinkAt& link_at) {
    const auto start = parts_of(directory);
    std::vector<std::string> at(start.begin(), start.end());
    std::deque<std::string> left;
    const auto enter = [&](std::string_view path) {
        if (path.starts_with('/')) {
            // An absolute path through the prefix's own name stays inside.
            const bool stays =
                path.starts_with(prefix) && path.substr(prefix.size()).find_first_not_of('/') != 0;
            if (!stays) return false;
            path.remove_prefix(prefix.size());
            at.clear();
        }
        const auto parts = parts_of(path);
        left.insert(left.begin(), parts.begin(), parts.end());
        return true;
    };
    if (!enter(target)) return std::nullopt;
    for (int links = 0; !left.empty();) {
        const auto part = std::move(left.front());
        left.pop_front();
        if (part == "..") {
            if (at.empty()) return std::nullopt;
            at.pop_back();
            continue;
        }
        at.push_back(part);
        const auto link = links < most_links ? link_at(joined(at, "/")) : std::nullopt;
        if (!link) continue;
        ++links;
        at.pop_back();
        if (!enter(*link)) return std::nullopt;
    }
    return joined(at, "/");
}

} // namespace containerize::conda

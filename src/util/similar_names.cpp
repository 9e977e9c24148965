#include "util/similar_names.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace containerize {

namespace {

std::size_t edit_distance(std::string_view one, std::string_view other) {
    std::vector<std::size_t> row(other.size() + 1);
    for (std::size_t j = 0; j <= other.size(); ++j)
        row[j] = j;
    for (std::size_t i = 1; i <= one.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= other.size(); ++j) {
            const std::size_t above = row[j];
            const std::size_t changed = diagonal + (one[i - 1] == other[j - 1] ? 0 : 1);
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
            diagonal = above;
        }
    }
    return row.back();
}

/// Strips what people omit or vary: "py-torch", "python_torch" and "torch" become the same.
std::string bare(std::string_view name) {
    std::string result;
    for (const char c : name)
        if (c != '-' && c != '_' && c != '.') result += c;
    for (const std::string_view start : {"python", "py", "lib"})
        if (result.starts_with(start) && result.size() > start.size() + 2) return result.substr(start.size());
    return result;
}

} // namespace

std::vector<std::string> similar_names(const std::vector<std::string>& names, const std::string& name) {
    std::vector<std::pair<std::size_t, std::string>> close;
    const auto wanted = bare(name);
    for (const auto& candidate : names) {
        if (candidate.size() > name.size() + 8 || name.size() > candidate.size() + 8) continue;
        const auto distance = bare(candidate) == wanted ? 0 : edit_distance(candidate, name);
        if (distance <= std::max<std::size_t>(1, name.size() / 3)) close.emplace_back(distance, candidate);
    }
    std::ranges::sort(close);
    if (close.size() > 5) close.resize(5);
    std::vector<std::string> found;
    for (auto& [distance, candidate] : close)
        found.push_back(std::move(candidate));
    return found;
}

} // namespace containerize

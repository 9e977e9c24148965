#include "cluster/tasks_per_node.h"

#include <charconv>
#include <optional>
#include <string>

namespace containerize::cluster {

namespace {

constexpr unsigned most_nodes = 1'000'000;

std::optional<unsigned> number(std::string_view text) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

} // namespace

Result<std::vector<unsigned>> expand_tasks_per_node(std::string_view list) {
    std::vector<unsigned> counts;
    for (auto rest = list; !rest.empty();) {
        const auto comma = rest.find(',');
        const auto element = rest.substr(0, comma);
        const auto open = element.find("(x");
        const auto count = number(element.substr(0, open));
        std::optional<unsigned> times = 1;
        if (open != element.npos)
            times = element.ends_with(')') ? number(element.substr(open + 2, element.size() - open - 3))
                                           : std::nullopt;
        if (!count || !times || *times > most_nodes || counts.size() + *times > most_nodes)
            return fail_input("invalid Slurm list of tasks per node", {}, std::string(list.substr(0, 200)),
                              "A valid list is 2(x3),1.");
        counts.insert(counts.end(), *times, *count);
        rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
    }
    return counts;
}

} // namespace containerize::cluster

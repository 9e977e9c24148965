#include "cluster/tasks_per_node.h"

#include "core/text.h"

#include <optional>
#include <string>

namespace containerize::cluster {

namespace {

constexpr unsigned most_nodes = 1'000'000;

} // namespace

Result<std::vector<unsigned>> expand_tasks_per_node(std::string_view list) {
    std::vector<unsigned> counts;
    if (list.empty()) return counts;
    for (const auto element : split(list, ',')) {
        const auto open = element.find("(x");
        const auto count = to_number<unsigned>(element.substr(0, open));
        std::optional<unsigned> times = 1;
        if (open != element.npos)
            times = element.ends_with(')')
                        ? to_number<unsigned>(element.substr(open + 2, element.size() - open - 3))
                        : std::nullopt;
        if (!count || !times || *times > most_nodes || counts.size() + *times > most_nodes)
            return fail_input("invalid Slurm list of tasks per node", {}, std::string(list.substr(0, 200)),
                              "A valid list is 2(x3),1.");
        counts.insert(counts.end(), *times, *count);
    }
    return counts;
}

} // namespace containerize::cluster

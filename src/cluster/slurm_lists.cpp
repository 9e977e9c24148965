#include "cluster/slurm_lists.h"

#include "core/text.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace containerize::cluster {

namespace {

constexpr std::size_t most_hosts = 1'000'000;
/// The limit of DNS: a range could repeat a long name a million times.
constexpr std::size_t longest_name = 255;

std::unexpected<Error> refuse(std::string_view list, std::string why) {
    return fail_input("invalid Slurm host list", std::move(why), std::string(list.substr(0, 200)),
                      "A valid list is n[1-3,7],login1.");
}

std::unexpected<Error> refuse_number(std::string_view list) {
    return refuse(list, "it contains too many hosts");
}

std::unexpected<Error> refuse_length(std::string_view list) {
    return refuse(list, "a host name is too long");
}

/// Expands "1-3" or "07", padding numbers to the width of the first.
Result<std::vector<std::string>> expand_range(std::string_view list, std::string_view range) {
    const auto dash = range.find('-');
    const auto written = range.substr(0, dash);
    const auto first = to_number<std::uint64_t>(written);
    const auto last = dash == range.npos ? first : to_number<std::uint64_t>(range.substr(dash + 1));
    if (written.size() > longest_name) return refuse_length(list);
    if (!first || !last || *last < *first)
        return refuse(list, "\"" + std::string(range.substr(0, 200)) + "\" is not a range of numbers");
    if (*last - *first >= most_hosts) return refuse_number(list);
    std::vector<std::string> numbers;
    for (std::uint64_t i = 0; i <= *last - *first; ++i) {
        auto text = std::to_string(*first + i);
        if (text.size() < written.size()) text.insert(0, written.size() - text.size(), '0');
        numbers.push_back(std::move(text));
    }
    return numbers;
}

/// Expands the contents of a pair of brackets.
Result<std::vector<std::string>> expand_ranges(std::string_view list, std::string_view ranges) {
    std::vector<std::string> all;
    for (const auto range : split(ranges, ',')) {
        const auto some = TRY(expand_range(list, range));
        if (all.size() + some.size() > most_hosts) return refuse_number(list);
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

/// Expands an element of the list, which may have several pairs of brackets.
Result<std::vector<std::string>> expand_element(std::string_view list, std::string_view element) {
    if (element.empty()) return refuse(list, "a name is empty");
    std::vector<std::string> names = {""};
    while (!element.empty()) {
        const auto open = element.find('[');
        const auto plain = element.substr(0, open);
        for (auto& name : names) {
            if (name.size() + plain.size() > longest_name) return refuse_length(list);
            name += plain;
        }
        if (open == element.npos) break;
        const auto close = element.find(']', open);
        if (close == element.npos) return refuse(list, "a bracket is not closed");
        const auto ranges = TRY(expand_ranges(list, element.substr(open + 1, close - open - 1)));
        if (names.size() * ranges.size() > most_hosts) return refuse_number(list);
        std::vector<std::string> longer;
        for (const auto& name : names)
            for (const auto& suffix : ranges) {
                if (name.size() + suffix.size() > longest_name) return refuse_length(list);
                longer.push_back(name + suffix);
            }
        names = std::move(longer);
        element.remove_prefix(close + 1);
    }
    return names;
}

/// The position of the first comma outside brackets; npos if there is none.
std::size_t end_of_element(std::string_view list) {
    bool inside = false;
    for (std::size_t at = 0; at < list.size(); ++at) {
        if (list[at] == '[') inside = true;
        if (list[at] == ']') inside = false;
        if (list[at] == ',' && !inside) return at;
    }
    return list.npos;
}

} // namespace

Result<std::vector<std::string>> expand_host_list(std::string_view list) {
    const auto is_of_names = [](char c) {
        return c > ' ' && c < 0x7f && c != '/' && c != '\'' && c != '"' && c != '$' && c != '`' && c != '\\';
    };
    if (!std::ranges::all_of(list, is_of_names))
        return refuse(list, "it contains characters that are not allowed in host names");
    std::vector<std::string> hosts;
    for (auto rest = list;;) {
        const auto comma = end_of_element(rest);
        const auto some = TRY(expand_element(list, rest.substr(0, comma)));
        hosts.insert(hosts.end(), some.begin(), some.end());
        if (hosts.size() > most_hosts) return refuse_number(list);
        if (comma == rest.npos) return hosts;
        rest.remove_prefix(comma + 1);
    }
}

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
        if (!count || !times || *times > most_hosts || counts.size() + *times > most_hosts)
            return fail_input("invalid Slurm list of tasks per node", {}, std::string(list.substr(0, 200)),
                              "A valid list is 2(x3),1.");
        counts.insert(counts.end(), *times, *count);
    }
    return counts;
}

} // namespace containerize::cluster

#include "core/cpus.h"

#include "core/text.h"

#include <array>
#include <cstring>

#include <sched.h>

namespace containerize {

namespace {

using Mask = std::array<cpu_set_t, most_cpus / CPU_SETSIZE>;

} // namespace

std::vector<unsigned> parse_cpu_list(std::string_view list) {
    std::vector<unsigned> cpus;
    for (const auto range : split(trimmed(list), ',')) {
        const auto dash = range.find('-');
        const auto first = to_number<unsigned>(range.substr(0, dash));
        const auto last = dash == range.npos ? first : to_number<unsigned>(range.substr(dash + 1));
        if (!first || !last) break;
        for (auto cpu = *first; cpu <= *last && cpu < most_cpus; ++cpu)
            cpus.push_back(cpu);
    }
    return cpus;
}

std::vector<unsigned> allowed_cpus() {
    Mask mask{};
    std::vector<unsigned> cpus;
    if (sched_getaffinity(0, sizeof mask, mask.data()) != 0) return cpus;
    for (unsigned cpu = 0; cpu < most_cpus; ++cpu)
        if (CPU_ISSET_S(cpu, sizeof mask, mask.data())) cpus.push_back(cpu);
    return cpus;
}

void use_cpus(const std::vector<unsigned>& cpus) {
    Mask mask{};
    for (const auto cpu : cpus)
        CPU_SET_S(cpu, sizeof mask, mask.data());
    sched_setaffinity(0, sizeof mask, mask.data());
}

void use_all_cpus() {
    Mask mask;
    std::memset(mask.data(), 0xff, sizeof mask);
    sched_setaffinity(0, sizeof mask, mask.data());
}

} // namespace containerize

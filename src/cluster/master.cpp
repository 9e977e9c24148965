#include "cluster/master.h"

#include "cluster/slurm_lists.h"
#include "core/filesystem.h"
#include "core/schedulers.h"
#include "core/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <sstream>

namespace containerize::cluster {

namespace {

constexpr unsigned last_port = 65535;
/// Sites usually run their services below this.
constexpr unsigned usual_first_port = 10000;
/// Used if the kernel assigns nearly all ports above; still above those of Slurm and X11.
constexpr unsigned lowest_first_port = 7000;
/// Fewer would cause collisions between jobs with similar numbers.
constexpr std::size_t enough_ports = 2000;
constexpr unsigned steps_told_apart = 64;
/// torch's own defaults, left to others.
constexpr std::array<unsigned, 2> defaults_of_torch = {29400, 29500};

std::optional<std::uint64_t> leading_number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    return value;
}

std::vector<unsigned> free_ports(unsigned first, const TakenPorts& taken) {
    std::array<bool, last_port + 1> is_taken{};
    const auto take = [&](const PortRange& range) {
        const auto end = std::min(range.second, last_port) + 1;
        if (range.first < end) std::fill(is_taken.begin() + range.first, is_taken.begin() + end, true);
    };
    take(taken.ephemeral);
    std::ranges::for_each(taken.reserved, take);
    for (const auto port : defaults_of_torch)
        take({port, port});
    std::vector<unsigned> ports;
    for (auto port = first; port <= last_port; ++port)
        if (!is_taken[port]) ports.push_back(port);
    return ports;
}

/// The number of the batch job in any supported system; nothing outside of jobs.
std::optional<std::uint64_t> job_number(const Environment& variables) {
    for (const auto& scheduler : schedulers)
        if (const auto number = leading_number(variable(variables, scheduler.variables.front())))
            return number;
    return std::nullopt;
}

} // namespace

Result<std::vector<std::string>> find_hosts(const Environment& variables, Launcher launcher) {
    std::string list;
    // The helper of an MPI launcher runs in a step of its own, which may lack the first node.
    if (launcher != Launcher::mpi) list = variable(variables, "SLURM_STEP_NODELIST");
    if (list.empty()) list = variable(variables, "SLURM_JOB_NODELIST");
    if (list.empty()) return std::vector<std::string>();
    return expand_host_list(list);
}

std::string master_address(const Environment& variables, const std::vector<std::string>& hosts) {
    if (auto given = variable(variables, "MASTER_ADDR"); !given.empty()) return given;
    return hosts.empty() ? "127.0.0.1" : hosts.front();
}

TakenPorts parse_taken_ports(std::string_view range, std::string_view reserved) {
    TakenPorts taken;
    std::istringstream words{std::string(range)};
    if (unsigned first = 0, last = 0; words >> first >> last) taken.ephemeral = {first, last};
    for (const auto element : split(reserved, ',')) {
        const auto dash = element.find('-');
        const auto first = leading_number(element);
        const auto last = dash == element.npos ? first : leading_number(element.substr(dash + 1));
        if (first && last && *last <= last_port)
            taken.reserved.emplace_back(static_cast<unsigned>(*first), static_cast<unsigned>(*last));
    }
    return taken;
}

TakenPorts read_taken_ports() {
    return parse_taken_ports(read_file("/proc/sys/net/ipv4/ip_local_port_range").value_or(""),
                             read_file("/proc/sys/net/ipv4/ip_local_reserved_ports").value_or(""));
}

Result<std::uint16_t> master_port(const Environment& variables, const TakenPorts& taken, unsigned user) {
    auto given = TRY(number_in(variables, "MASTER_PORT", 0));
    if (given > last_port)
        return fail_input("MASTER_PORT is not a valid port", "it is " + std::to_string(given));
    if (given != 0) return static_cast<std::uint16_t>(given);

    auto ports = free_ports(usual_first_port, taken);
    if (ports.size() < enough_ports) ports = free_ports(lowest_first_port, taken);
    if (ports.empty())
        return fail({.what = "there is no free port for the ranks to connect to",
                     .why = "all ports are ephemeral or reserved",
                     .where = "/proc/sys/net/ipv4/ip_local_port_range",
                     .hint = "Set MASTER_PORT to a port that is free on the first node of the job."});
    // Batch scripts and named steps have no number and use the last one.
    const auto step = leading_number(variable(variables, "SLURM_STEP_ID")).value_or(steps_told_apart - 1);
    const auto index = job_number(variables).value_or(user) * steps_told_apart + step % steps_told_apart;
    return static_cast<std::uint16_t>(ports[index % ports.size()]);
}

std::string job_name(const Environment& variables) {
    const auto job = job_number(variables);
    if (!job) return "local";
    const auto step = variable(variables, "SLURM_STEP_ID");
    return std::to_string(*job) + (step.empty() ? "" : "." + step);
}

} // namespace containerize::cluster

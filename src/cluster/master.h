// Determines where the ranks of a job meet. All nodes get the same result without communicating.
#pragma once

#include "cluster/ranks.h"
#include "core/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace containerize::cluster {

/// Returns the hosts of the ranks, that of rank 0 first: in a task of srun those of its step, elsewhere in a
/// job those of the job. Empty outside of jobs.
Result<std::vector<std::string>> find_hosts(const Environment& variables, Launcher launcher);

/// Returns MASTER_ADDR if set, else the first of `hosts`, else "127.0.0.1".
std::string master_address(const Environment& variables, const std::vector<std::string>& hosts);

using PortRange = std::pair<unsigned, unsigned>; ///< first and last
/// Ports that may be in use: those that the kernel assigns, and reserved ones. Parsed from
/// /proc/sys/net/ipv4/ip_local_port_range and ip_local_reserved_ports.
struct TakenPorts {
    PortRange ephemeral{32768, 60999};
    std::vector<PortRange> reserved;
};
TakenPorts parse_taken_ports(std::string_view range, std::string_view reserved);
TakenPorts read_taken_ports();

/// Returns MASTER_PORT if set, else a port computed from the numbers of the job and step, different for jobs
/// with similar numbers and for the first 63 steps of a job. Outside of jobs uses the number `user` instead.
/// Fails with an input error if MASTER_PORT is invalid.
Result<std::uint16_t> master_port(const Environment& variables, const TakenPorts& taken, unsigned user);

/// Returns an identifier of the job or step: "12.0", "12"; "local" outside of jobs.
std::string job_name(const Environment& variables);

} // namespace containerize::cluster

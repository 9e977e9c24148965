// Where the ranks of a job meet: the same answer on all its nodes, without asking anybody.
#pragma once

#include "cluster/ranks.h"
#include "util/error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace containerize::cluster {

/// The hosts on which the ranks are, the first rank's first. Of a task of srun its step's, of anything else
/// in a job the job's. Empty outside of jobs.
Result<std::vector<std::string>> find_hosts(const Variables& variables, Launcher launcher);

/// MASTER_ADDR if that is set, else the first of `hosts`, else this machine ("127.0.0.1").
std::string master_address(const Variables& variables, const std::vector<std::string>& hosts);

using PortRange = std::pair<unsigned, unsigned>; ///< first and last
/// Ports that nobody may count on: those that the kernel hands out, and those that are reserved, of which
/// the text is /proc/sys/net/ipv4/ip_local_port_range and ip_local_reserved_ports.
struct TakenPorts {
    PortRange ephemeral{32768, 60999};
    std::vector<PortRange> reserved;
};
TakenPorts parse_taken_ports(std::string_view range, std::string_view reserved);
TakenPorts read_taken_ports();

/// MASTER_PORT if that is set, else a port made of the job's and the step's number: jobs with near numbers,
/// and the first 63 steps of a job, get different ones. Outside of jobs one made of the user's number.
/// A MASTER_PORT that is no port is an input error.
Result<std::uint16_t> master_port(const Variables& variables, const TakenPorts& taken, unsigned user);

/// What this job, or this step of it, is called: "12.0", "12"; "local" outside of jobs.
std::string job_name(const Variables& variables);

} // namespace containerize::cluster

// Computes the environment and arguments of a rank, or of a node's torchrun.
#pragma once

#include "cluster/affinity.h"
#include "cluster/master.h"
#include "cluster/ranks.h"
#include "cluster/site.h"
#include "core/error.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace containerize::cluster {

/// What is known about this machine.
struct Machine {
    TakenPorts ports;
    unsigned user = 0; ///< user ID
    std::string host;
    std::vector<unsigned> allowed, near; ///< see affinity.h
};
Machine this_machine();

/// Where the ranks meet, and which of them this is.
struct Place {
    Ranks ranks;
    std::vector<std::string> hosts; ///< of the step or job; empty outside of jobs
    std::string address;
    std::uint16_t port = 0;
    std::string job; ///< job_name(), the same for all ranks
};
Result<Place> find_place(const Environment& variables, const Machine& machine);

/// Returns those of MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, LOCAL_RANK, LOCAL_WORLD_SIZE and NODE_RANK
/// that are not set.
Settings rank_settings(const Environment& variables, const Place& place);
/// Returns the site's variables that are not set.
Settings site_settings(const Environment& variables, const Site& site);

struct Caches {
    Settings settings;          ///< variables that are unset, or name an unusable directory
    std::vector<Error> refused; ///< why earlier `parents`, and directories for single caches, were not used
};
/// Creates the site's cache directories on this node's storage: in the first of `parents` that has, or can be
/// given, a directory of this user's own. Where that is not possible, programs keep their default caches; but
/// fails if a variable names such a directory that belongs to somebody else on this node.
Result<Caches> make_caches(const Environment& variables, const Site& site,
                           std::span<const std::string> parents, unsigned user);

/// The command line with which torchrun starts `processes` on this node and finds the other nodes.
std::vector<std::string> torchrun_command(const std::string& torchrun, const Environment& variables,
                                          const Place& place, unsigned processes, const std::string& host);

/// The default number of processes per node: one for each GPU that Slurm assigned, otherwise one.
Result<unsigned> default_processes(const Environment& variables, const Site& site);

} // namespace containerize::cluster

// What a rank, or the torchrun of a node, is given before its program starts.
#pragma once

#include "cluster/affinity.h"
#include "cluster/master.h"
#include "cluster/ranks.h"
#include "cluster/site.h"
#include "util/error.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace containerize::cluster {

/// What was read of the machine, once.
struct Machine {
    TakenPorts ports;
    unsigned user = 0; ///< number of
    std::string host;
    std::vector<unsigned> allowed, near; ///< affinity.h
};
Machine this_machine();

/// Where all ranks meet, and which this one is.
struct Place {
    Ranks ranks;
    std::vector<std::string> hosts; ///< of the step or job; empty outside of jobs
    std::string address;
    std::uint16_t port = 0;
    std::string job; ///< job_name(), the same for all ranks
};
Result<Place> find_place(const Variables& variables, const Machine& machine);

using Settings = std::vector<std::pair<std::string, std::string>>;

/// MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK: those that are not
/// set.
Settings rank_settings(const Variables& variables, const Place& place);
/// Those of the site that are not set.
Settings site_settings(const Variables& variables, const Site& site);

struct Caches {
    Settings settings;          ///< variables that are not set, or name what cannot be used
    std::vector<Error> refused; ///< why the first of `parents` was not used
};
/// Makes the directories of the site's caches on this node's own storage: in the first of `parents` in which
/// the user's is, or can be made, the user's alone. Without any, programs have their caches where they always
/// have them; a failure where they were told to use one that is another's here.
Result<Caches> make_caches(const Variables& variables, const Site& site, std::span<const std::string> parents,
                           unsigned user);

/// The words by which torchrun starts `processes` on this node and finds the other nodes'.
std::vector<std::string> torchrun_command(const std::string& torchrun, const Variables& variables,
                                          const Place& place, unsigned processes, const std::string& host);

/// How many processes a node gets if nobody says: one for each GPU that Slurm gave, else one.
Result<unsigned> default_processes(const Variables& variables, const Site& site);

} // namespace containerize::cluster

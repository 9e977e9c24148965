#include "cluster/ranks.h"

#include "cluster/slurm_lists.h"
#include "core/text.h"

#include <array>
#include <utility>
#include <vector>

namespace containerize::cluster {

namespace {

/// The variables of one launcher; the last three may be none.
struct Names {
    Launcher launcher;
    Variable rank, size, local_rank, local_size, node;
};

// In order of precedence: RANK is the user's choice, and an MPI task inherits the Slurm variables of its
// launcher's helper. Hydra is recognised by its local rank, since srun sets PMI_RANK, too.
constexpr std::array<Names, 5> known = {{
    {Launcher::user, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"},
    {Launcher::mpi,
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {}},
    {Launcher::mpi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", {}},
    {Launcher::mpi, "PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "PALS_NODEID"},
    {Launcher::slurm, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", {}, "SLURM_NODEID"},
}};

bool applies(const Names& names, const Environment& variables) {
    if (!variables.contains(names.rank.name())) return false;
    // Batch scripts have Slurm's variables as well, but not those of a step.
    if (names.launcher == Launcher::slurm) return variables.contains("SLURM_STEP_ID");
    return names.launcher == Launcher::user || variables.contains(names.local_rank.name());
}

/// The number of the step's tasks on this node.
Result<unsigned> local_size_of_step(const Environment& variables, unsigned node) {
    const auto counts = TRY(expand_tasks_per_node(variable(variables, "SLURM_STEP_TASKS_PER_NODE")));
    return node < counts.size() ? counts[node] : 1U;
}

Result<Ranks> read(const Names& names, const Environment& variables) {
    if (!variables.contains(names.size.name()))
        return fail_input(std::string(names.rank.name()) + " is set without " + names.size.name(), {}, {},
                          "Set both or neither.");
    Ranks ranks{.launcher = names.launcher};
    const std::vector<std::pair<Variable, unsigned*>> fields = {{names.rank, &ranks.rank},
                                                                {names.size, &ranks.size},
                                                                {names.local_rank, &ranks.local_rank},
                                                                {names.local_size, &ranks.local_size},
                                                                {names.node, &ranks.node}};
    for (const auto& [name, field] : fields)
        if (name) *field = TRY(number_in(variables, name, *field));
    if (names.launcher == Launcher::slurm) ranks.local_size = TRY(local_size_of_step(variables, ranks.node));
    // Most MPI launchers do not tell the node; they fill nodes one after the other.
    if (!names.node && ranks.local_size > 0) ranks.node = ranks.rank / ranks.local_size;
    if (ranks.size == 0 || ranks.rank >= ranks.size)
        return fail_input(std::string(names.rank.name()) + " and " + names.size.name() + " do not match",
                          "rank " + std::to_string(ranks.rank) + " of " + std::to_string(ranks.size));
    return ranks;
}

} // namespace

Result<unsigned> number_in(const Environment& variables, Variable which, unsigned otherwise) {
    const auto text = variable(variables, which);
    if (text.empty()) return otherwise;
    if (const auto number = to_number<unsigned>(text)) return *number;
    return fail_input(std::string(which.name()) + " is not a number", "it is \"" + text + "\"");
}

Result<Ranks> find_ranks(const Environment& variables) {
    for (const auto& names : known)
        if (applies(names, variables)) return read(names, variables);
    return Ranks{};
}

} // namespace containerize::cluster

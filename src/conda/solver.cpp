#include "conda/solver.h"

#include "conda/conflict.h"
#include "conda/libsolv.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace containerize::conda {

namespace {

/// Limits the pool to a set of solvables as long as it lives.
class Considered {
public:
    explicit Considered(Pool* pool) : pool_(pool) {
        map_init(&map_, pool->nsolvables);
        map_setall(&map_);
        pool->considered = &map_;
    }
    Considered(const Considered&) = delete;
    Considered& operator=(const Considered&) = delete;
    ~Considered() {
        pool_->considered = nullptr;
        map_free(&map_);
    }
    void exclude(Id solvable) {
        auto& byte = map_.map[solvable >> 3];
        byte = static_cast<unsigned char>(byte & ~(1 << (solvable & 7)));
    }
    [[nodiscard]] bool has(Id solvable) const { return MAPTST(&map_, solvable) != 0; }

private:
    Pool* pool_;
    Map map_{};
};

// Strict priority: excludes packages of a name from all but the highest channel that has the name, except
// from channels that the request names for it.
void exclude_lower_channels(const PackagePool& packages, const std::vector<Wanted>& wanted,
                            Considered& considered) {
    Pool* pool = packages.pool();
    std::vector<Id> of_channels;
    std::map<Id, int> best;
    for (Id id = 1; id < pool->nsolvables; ++id) {
        const Solvable* solvable = pool_id2solvable(pool, id);
        if (solvable->repo == nullptr || packages.is_virtual(id) || packages.is_installed(id)) continue;
        of_channels.push_back(id);
        const auto [entry, is_new] = best.emplace(solvable->name, solvable->repo->priority);
        if (!is_new) entry->second = std::max(entry->second, solvable->repo->priority);
    }
    std::set<std::pair<std::string, std::string>> named; ///< package and channel
    for (const auto& one : wanted)
        for (const auto& channel : one.channels)
            named.emplace(one.spec.name, channel);
    for (const Id id : of_channels) {
        const Solvable* solvable = pool_id2solvable(pool, id);
        if (solvable->repo->priority != best[solvable->name] &&
            !named.contains({pool_id2str(pool, solvable->name), packages.channel(id)}))
            considered.exclude(id);
    }
}

void add_pins(PackagePool& packages, const std::vector<Wanted>& pins) {
    for (const auto& [wanted, channels, where] : pins) {
        const Id id = add_solvable(
            packages.machine(), "the pin on " + wanted.name + (where.empty() ? "" : " (" + where + ")"), "1");
        ::Repodata* data = repo_last_repodata(packages.machine());
        auto pin = wanted;
        pin.channel.clear();
        repodata_add_idarray(data, id, SOLVABLE_CONSTRAINS, packages.dependency(pin));
        repodata_internalize(data);
    }
}

// The solution depends on the order of requests: sort them by name, like mamba.
void normalise(std::vector<Wanted>& wanted, bool pip_with_python) {
    const auto asks_for = [&](std::string_view name) {
        return std::ranges::any_of(wanted, [&](const Wanted& one) { return one.spec.name == name; });
    };
    if (pip_with_python && asks_for("python") && !asks_for("pip"))
        if (auto pip = parse_match_spec("pip")) wanted.push_back({.spec = std::move(*pip)});
    std::ranges::stable_sort(wanted, {}, [](const Wanted& one) { return one.spec.name; });
}

/// Whether a virtual package matches.
bool machine_has(const PackagePool& packages, const MatchSpec& spec) {
    Id id = 0;
    const Solvable* solvable = nullptr;
    FOR_REPO_SOLVABLES(packages.machine(), id, solvable) {
        if (const auto record = packages.record(id); record && spec.matches(*record)) return true;
    }
    return false;
}

} // namespace

std::vector<std::string> names_in(const SolveRequest& request) {
    std::vector<std::string> names = {"pip"}; // a request for Python implies pip
    for (const auto& wanted : request.wanted)
        names.push_back(wanted.spec.name);
    return names;
}

Result<Solution> solve(PackagePool& packages, SolveRequest request) {
    Pool* pool = packages.pool();
    normalise(request.wanted, request.pip_with_python);
    add_pins(packages, request.pins);
    Considered considered(pool);
    if (request.priority == ChannelPriority::strict)
        exclude_lower_channels(packages, request.wanted, considered);
    if (request.priority == ChannelPriority::disabled)
        for (int i = 1; i < pool->nrepos; ++i)
            if (pool->repos[i] != nullptr) pool->repos[i]->priority = 0;
    pool_createwhatprovides(pool);

    QueueOwner jobs;
    std::vector<const Wanted*> of_job; ///< the request of each job; null for virtual packages
    for (const auto& wanted : request.wanted) {
        if (wanted.spec.name.starts_with("__")) {
            if (machine_has(packages, wanted.spec)) continue;
            return fail_input("the machine has no " + wanted.spec.to_string(), {}, wanted.where,
                              missing_virtual_hint(wanted.spec.name));
        }
        QueueOwner candidates;
        bool hidden = false;
        for (const Id id : packages.matching(wanted.spec, wanted.channels)) {
            if (considered.has(id))
                queue_push(&candidates.queue, id);
            else
                hidden = true;
        }
        if (candidates.queue.count == 0) return fail(nothing_matches(packages, wanted, hidden));
        queue_push2(&jobs.queue, SOLVER_INSTALL | SOLVER_SOLVABLE_ONE_OF,
                    pool_queuetowhatprovides(pool, &candidates.queue));
        of_job.push_back(&wanted);
    }
    Id id = 0;
    const Solvable* solvable = nullptr;
    FOR_REPO_SOLVABLES(packages.machine(), id, solvable) {
        queue_push2(&jobs.queue, SOLVER_INSTALL | SOLVER_SOLVABLE, id);
        of_job.push_back(nullptr);
    }

    const std::unique_ptr<Solver, void (*)(Solver*)> solver(solver_create(pool), solver_free);
    // Installed packages that nobody requested may change in any way.
    for (const int flag : {SOLVER_FLAG_ALLOW_DOWNGRADE, SOLVER_FLAG_ALLOW_UNINSTALL,
                           SOLVER_FLAG_ALLOW_ARCHCHANGE, SOLVER_FLAG_ALLOW_VENDORCHANGE})
        solver_set_flag(solver.get(), flag, 1);
    if (solver_solve(solver.get(), &jobs.queue) != 0)
        return fail(explain_conflict(packages, *solver, of_job));

    const std::unique_ptr<Transaction, void (*)(Transaction*)> transaction(
        solver_create_transaction(solver.get()), transaction_free);
    transaction_order(transaction.get(), 0);
    Solution solution;
    for (int i = 0; i < transaction->steps.count; ++i) {
        const Id step = transaction->steps.elements[i];
        if (packages.is_virtual(step)) continue;
        if (packages.is_installed(step)) {
            solution.remove.emplace_back(pool_id2str(pool, pool_id2solvable(pool, step)->name));
            continue;
        }
        auto record = TRY(packages.record(step));
        solution.install.push_back(std::move(record));
    }
    return solution;
}

} // namespace containerize::conda

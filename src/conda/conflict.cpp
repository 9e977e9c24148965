#include "conda/conflict.h"

#include "conda/libsolv.h"
#include "conda/matching.h"
#include "core/text.h"
#include "util/similar_names.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace containerize::conda {

namespace {

/// Enough to see the reason: conflicts of large environments may involve thousands of rules.
constexpr std::size_t most_lines = 30;
constexpr int deepest = 6;

/// The valid versions, oldest first.
std::vector<std::string> sorted_versions(const std::set<std::string>& texts) {
    std::vector<Version> versions;
    for (const auto& text : texts)
        if (auto version = Version::parse(text)) versions.push_back(std::move(*version));
    std::ranges::sort(versions, [](const Version& one, const Version& other) { return one < other; });
    std::vector<std::string> sorted;
    for (const auto& version : versions)
        sorted.push_back(version.text());
    return sorted;
}

/// "0.15.1", "0.15.1, 0.15.2" or "0.15.0 to 0.15.9".
std::string summary(const std::set<std::string>& texts) {
    const auto versions = sorted_versions(texts);
    return versions.size() > 3 ? versions.front() + " to " + versions.back() : joined(versions, ", ");
}

class Explanation {
public:
    Explanation(const PackagePool& packages, Solver& solver, const std::vector<const Wanted*>& of_job)
        : packages_(packages), pool_(packages.pool()), solver_(solver), of_job_(of_job) {
        const auto problems = static_cast<Id>(solver_problem_count(&solver));
        for (Id problem = 1; problem <= problems; ++problem) {
            QueueOwner rules;
            solver_findallproblemrules(&solver_, problem, &rules.queue);
            for (int i = 0; i < rules.queue.count; ++i)
                collect(rules.queue.elements[i]);
        }
    }

    std::string text() {
        std::ranges::sort(wanted_); // pointers into one array, so this is the order of the request
        for (const Wanted* wanted : wanted_) {
            line(1, wanted->spec.text + (wanted->where.empty() ? "" : "  (" + wanted->where + ")"));
            std::set<Id> candidates;
            for (const auto& [source, needs] : needs_)
                if (name_of(source) == wanted->spec.name) candidates.insert(source);
            std::set<Id> seen;
            children(candidates, 2, seen);
        }
        for (const auto& [source, needs] : needs_) {
            std::set<Id> seen;
            if (packages_.is_virtual(source)) children({source}, 1, seen); // a pin
        }
        if (count_ > most_lines)
            text_ += "\n  ... and " + std::to_string(count_ - most_lines) + " more lines";
        return text_;
    }

    [[nodiscard]] const std::string& missing_virtual() const { return missing_virtual_; }
    [[nodiscard]] std::size_t requests() const { return wanted_.size(); }

private:
    struct Need {
        Id dependency = 0;
        bool excludes = false; ///< from run_constrained: limits other packages
        auto operator<=>(const Need&) const = default;
    };

    [[nodiscard]] std::string name_of(Id solvable) const {
        return pool_id2str(pool_, pool_id2solvable(pool_, solvable)->name);
    }
    static std::string name_in(std::string_view dependency) {
        return std::string(dependency.substr(0, dependency.find_first_of(" =<>!~[")));
    }

    void collect(Id rule) {
        Id source = 0;
        Id target = 0;
        Id dependency = 0;
        switch (solver_ruleinfo(&solver_, rule, &source, &target, &dependency)) {
        case SOLVER_RULE_PKG_NOTHING_PROVIDES_DEP:
            nothing_.insert(dependency);
            [[fallthrough]];
        case SOLVER_RULE_PKG_REQUIRES:
            needs_[source].insert({dependency, false});
            break;
        case SOLVER_RULE_PKG_CONSTRAINS:
            needs_[source].insert({dependency, true});
            break;
        case SOLVER_RULE_JOB: {
            // The index counts from 1, and each job has two words.
            const int position = solver_rule2jobidx(&solver_, rule);
            if (position <= 0) break;
            const auto at = static_cast<std::size_t>(position - 1) / 2;
            if (at < of_job_.size() && of_job_[at] != nullptr &&
                std::ranges::find(wanted_, of_job_[at]) == wanted_.end())
                wanted_.push_back(of_job_[at]);
            break;
        }
        default:
            break;
        }
    }

    void line(int depth, const std::string& content) {
        if (++count_ > most_lines) return;
        text_ += "\n" + std::string(static_cast<std::size_t>(depth - 1) * 2 + 2, ' ') + content;
    }

    void children(const std::set<Id>& solvables, int depth, std::set<Id>& seen) {
        if (depth > deepest) return;
        struct Group {
            std::set<std::string> versions;
            std::string name;
        };
        std::map<std::pair<std::string, Need>, Group> groups;
        for (const Id solvable : solvables) {
            if (!seen.insert(solvable).second) continue;
            for (const auto& need : needs_[solvable])
                groups[{name_of(solvable), need}].versions.insert(packages_.version(solvable));
        }
        for (const auto& [key, group] : groups) {
            const auto& [name, need] = key;
            const auto dependency = dependency_text(pool_, need.dependency);
            const bool pin = name.find(' ') != std::string::npos; // a pin has no version
            line(depth, "- " + name + (pin ? "" : " " + summary(group.versions)) +
                            (need.excludes ? " permits only " : " needs ") + dependency +
                            remark(need, dependency));
            if (need.excludes) continue;
            std::set<Id> providers;
            Id provider = 0;
            Id at = 0;
            Pool* pool = pool_;
            FOR_PROVIDES(provider, at, need.dependency) {
                if (needs_.contains(provider)) providers.insert(provider);
            }
            children(providers, depth + 1, seen);
        }
    }

    std::string remark(const Need& need, const std::string& dependency) {
        const std::string name = name_in(dependency);
        if (nothing_.contains(need.dependency)) {
            if (!name.starts_with("__")) return ", which no channel has";
            missing_virtual_ = name;
            return ", which the machine does not have";
        }
        for (const Wanted* wanted : wanted_)
            if (wanted->spec.name == name && wanted->spec.text != dependency)
                return ", but " + wanted->spec.text + " was requested";
        return {};
    }

    const PackagePool& packages_;
    Pool* pool_;
    Solver& solver_;
    const std::vector<const Wanted*>& of_job_;
    std::vector<const Wanted*> wanted_;
    std::map<Id, std::set<Need>> needs_;
    std::set<Id> nothing_;
    std::string missing_virtual_;
    std::string text_;
    std::size_t count_ = 0;
};

} // namespace

std::string missing_virtual_hint(const std::string& name) {
    if (name == "__cuda")
        return "To build for nodes with a GPU, give the CUDA version of their driver, such as --cuda 12.4.";
    const auto variable = upper(name.substr(std::min(name.find_first_not_of('_'), name.size())));
    return "If the nodes that will run the programs have it, set CONDA_OVERRIDE_" + variable + ".";
}

Error nothing_matches(const PackagePool& packages, const Wanted& wanted, bool hidden) {
    Error error{.what = "no channel has " + wanted.spec.text, .where = wanted.where, .fault = Fault::input};
    if (hidden) {
        error.why =
            "only a channel of lower priority has it, and strict channel priority forbids using that one";
        error.hint =
            "Name the channel (CHANNEL::" + wanted.spec.name + "), or set channel_priority to flexible.";
        return error;
    }
    MatchSpec by_name;
    by_name.name = wanted.spec.name;
    const auto same_name = packages.matching(by_name, {});
    std::set<std::string> versions, in_channel;
    for (const Id id : same_name) {
        versions.insert(packages.version(id));
        if (std::ranges::find(wanted.channels, packages.channel(id)) != wanted.channels.end())
            in_channel.insert(packages.version(id));
    }
    if (!wanted.channels.empty() && in_channel.empty() && !versions.empty()) {
        error.why = (wanted.channels.size() == 1 ? "the channel " + wanted.channels.front() + " has no"
                                                 : "none of " + joined(wanted.channels, ", ") + " has a") +
                    " package of that name, but other channels do";
    } else if (!versions.empty()) {
        auto newest = sorted_versions(versions);
        std::ranges::reverse(newest);
        const bool more = newest.size() > 8;
        if (more) newest.resize(8);
        error.why = "the available versions of " + wanted.spec.name + " are " + joined(newest, ", ") +
                    (more ? " and older" : "");
        if (wanted.spec.build) error.why += ", possibly without the build " + wanted.spec.build->text();
    } else {
        const auto names = packages.names();
        const bool is_there = std::ranges::find(names, wanted.spec.name) != names.end();
        error.why = is_there ? "none of its records is valid" : "there is no package of that name";
        const auto close = similar_names(names, wanted.spec.name);
        if (is_there)
            error.hint = "The log lists their errors. Tell the channel's maintainers.";
        else if (!close.empty())
            error.hint = "Did you mean " + joined(close, ", ") + "?";
        else
            error.hint = "If only PyPI has the package, list it under `pip:` (pixi.toml: "
                         "`pypi-dependencies`). Otherwise, name the channel that has it.";
    }
    return error;
}

Error explain_conflict(const PackagePool& packages, s_Solver& solver,
                       const std::vector<const Wanted*>& of_job) {
    Explanation explanation(packages, solver, of_job);
    const auto text = explanation.text();
    Error error{.what = explanation.requests() > 1 ? "these requirements conflict"
                                                   : "this requirement cannot be satisfied",
                .why = text,
                .hint = "Request other versions, or remove requirements that you do not need.",
                .fault = Fault::input};
    if (!explanation.missing_virtual().empty())
        error.hint = missing_virtual_hint(explanation.missing_virtual());
    return error;
}

} // namespace containerize::conda

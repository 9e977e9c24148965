#include "environments/activation.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "environments/environ_script.h"
#include "util/json.h"
#include "util/log.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>

#include <nlohmann/json.hpp>

namespace containerize::environments {

namespace {

using launch::EnvironmentChange;

constexpr std::string_view end_of_listing = "containerize-end";

std::vector<std::string> names_with_ending(const fs::path& directory, std::string_view ending) {
    std::vector<std::string> names;
    for (const auto& name : names_in(directory))
        if (name.ends_with(ending)) names.push_back(name);
    return names;
}

/// The variables that a script's text refers to: "$X", "${X...".
std::set<std::string> variables_in(std::string_view text) {
    std::set<std::string> names;
    for (std::size_t at = 0; (at = text.find('$', at)) != text.npos; ++at) {
        auto start = at + 1;
        while (start < text.size() && (text[start] == '{' || text[start] == '#' || text[start] == '!'))
            ++start;
        auto end = start;
        while (end < text.size() &&
               (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
            ++end;
        if (end > start && std::isdigit(static_cast<unsigned char>(text[start])) == 0)
            names.emplace(text.substr(start, end - start));
    }
    return names;
}

/// Variables that identify the environment itself, or that every script needs unchanged in order to run.
bool is_fixed(const std::string& name) {
    constexpr auto fixed = std::to_array<std::string_view>(
        {"CONDA_PREFIX", "CONDA_DEFAULT_ENV", "CONDA_SHLVL", "PREFIX", "IFS", "BASH_SOURCE", "BASH_VERSION",
         "SHLVL", "PWD", "OLDPWD", "_", "CONTAINERIZE_PREFIX"});
    return std::ranges::find(fixed, name) != fixed.end();
}

bool is_list(const std::string& name) {
    return name.ends_with("PATH") || name.ends_with("DIRS");
}

/// The environment before the first script, then after each script.
using Listings = std::vector<Environment>;

class Recorder {
public:
    Recorder(const BuildContext& context, std::vector<std::string> scripts)
        : context_(context), scripts_(std::move(scripts)) {}

    Result<Activation> record(const Environment& environment) {
        auto plain = TRY(run(environment));
        const Environment other = with_trial_values(environment);
        auto trial = TRY(run(other));
        Activation activation;
        for (std::size_t i = 0; i < scripts_.size(); ++i) {
            if (i + 1 >= plain.size() || i + 1 >= trial.size()) {
                log::warn("the activation script " + scripts_[i] +
                          " ends the shell that sources it. This script and the following ones are ignored.");
                break;
            }
            auto changes = difference(plain[i], plain[i + 1], context_.prefix);
            auto trial_changes = difference(trial[i], trial[i + 1], context_.prefix);
            drop_backups(changes, trial_changes);
            take_extensions(changes, trial_changes);
            if (changes == trial_changes) {
                activation.changes.insert(activation.changes.end(), changes.begin(), changes.end());
            } else {
                log::detail("the activation script " + scripts_[i] +
                            " depends on the caller, so it is sourced at each launch");
                activation.scripts.push_back(scripts_[i]);
            }
        }
        return activation;
    }

private:
    Result<Listings> run(const Environment& environment) const {
        std::string text = "list() { env -0; printf '" + std::string(end_of_listing) + "\\0'; }; list; ";
        for (std::size_t i = 0; i < scripts_.size(); ++i)
            text += ". \"$" + std::string("{") + std::to_string(i + 1) + "}\" >&2; list; ";
        std::vector<std::string> argv = {"bash", "--noprofile", "--norc", "-c", text, "bash"};
        for (const auto& script : scripts_)
            argv.push_back((context_.prefix / script).string());
        auto command = context_.inside(argv);
        command.environment = environment;
        auto outcome = TRY(capture(command));
        Listings listings;
        const std::string mark = std::string(end_of_listing) + '\0';
        for (std::size_t start = 0;;) {
            const auto end = outcome.output.find(mark, start);
            if (end == std::string::npos) break;
            listings.push_back(parse_listing(std::string_view(outcome.output).substr(start, end - start)));
            start = end + mark.size();
        }
        return listings;
    }

    /// Returns `environment` with a different value for every variable that a script refers to.
    Environment with_trial_values(const Environment& environment) const {
        Environment other = environment;
        for (const auto& script : scripts_) {
            const auto text = read_file(context_.root() / script);
            if (!text) continue;
            for (const auto& name : variables_in(*text)) {
                if (is_fixed(name)) continue;
                const auto trial = "/containerize-trial/" + name;
                auto& value = other[name];
                value = is_list(name) && !value.empty() ? value + ":" + trial
                        : name == "PATH"                ? value
                                                        : trial;
            }
        }
        return other;
    }

    // Drops "export OLD_X=$X", which saves the caller's value for a deactivation that never happens.
    static void drop_backups(std::vector<EnvironmentChange>& changes, std::vector<EnvironmentChange>& trial) {
        std::set<std::string> backups;
        for (const auto& change : trial) {
            constexpr std::string_view start = "/containerize-trial/";
            if (change.kind == EnvironmentChange::Kind::set && change.value.starts_with(start) &&
                change.value.substr(start.size()) != change.name)
                backups.insert(change.name);
        }
        for (auto* list : {&changes, &trial})
            std::erase_if(*list, [&](const auto& change) { return backups.contains(change.name); });
    }

    // "X=$CONDA_PREFIX/x${X:+:$X}" sets X if it is unset and extends it otherwise. Record it as an extension
    // in both cases.
    static void take_extensions(std::vector<EnvironmentChange>& changes,
                                const std::vector<EnvironmentChange>& trial) {
        for (auto& change : changes)
            for (const auto& other : trial) {
                const bool extends = other.kind == EnvironmentChange::Kind::prepend ||
                                     other.kind == EnvironmentChange::Kind::append;
                if (change.name == other.name && change.value == other.value &&
                    change.kind == EnvironmentChange::Kind::set && extends)
                    change.kind = other.kind;
            }
    }

    const BuildContext& context_;
    std::vector<std::string> scripts_;
};

std::vector<std::pair<std::string, std::string>> package_variables(const fs::path& root) {
    std::vector<std::pair<std::string, std::string>> variables;
    const auto read = [&](const fs::path& file, const char* key) {
        const auto text = read_file(file);
        if (!text) return;
        const auto parsed = parse_json_quietly(*text);
        const auto& values =
            key != nullptr && parsed.is_object() && parsed.contains(key) ? parsed.at(key) : parsed;
        if (!values.is_object()) {
            log::warn(file.filename().string() +
                      " of the environment is ignored, because it is not in conda's format.");
            return;
        }
        for (const auto& [name, value] : values.items())
            if (value.is_string() && !name.empty() && name.find('=') == std::string::npos)
                variables.emplace_back(name, value.get<std::string>());
    };
    for (const auto& name : names_with_ending(root / "etc/conda/env_vars.d", ".json"))
        read(root / "etc/conda/env_vars.d" / name, nullptr);
    if (quiet::exists(root / "conda-meta/state")) read(root / "conda-meta/state", "env_vars");
    return variables;
}

} // namespace

Result<Activation> record_activation(const BuildContext& context) {
    using Kind = EnvironmentChange::Kind;
    Activation activation;
    activation.changes = {{Kind::set, "CONDA_PREFIX", "${prefix}"},
                          {Kind::set, "CONDA_DEFAULT_ENV", "${prefix}"},
                          {Kind::set, "CONDA_SHLVL", "1"},
                          {Kind::unset, "PYTHONHOME", {}},
                          {Kind::prepend, "PATH", "${prefix}/bin"}};
    Environment environment = context.environment;
    environment.erase("TMPDIR");
    environment["CONDA_PREFIX"] = environment["CONDA_DEFAULT_ENV"] = context.prefix.string();
    environment["CONDA_SHLVL"] = "1";
    for (const auto& [name, value] : package_variables(context.root())) {
        environment[name] = value;
        activation.changes.push_back({Kind::set, name, value});
    }
    std::vector<std::string> scripts;
    for (const auto& name : names_with_ending(context.root() / "etc/conda/activate.d", ".sh"))
        scripts.push_back("etc/conda/activate.d/" + name);
    if (scripts.empty()) return activation;
    auto recorded = TRY(Recorder(context, std::move(scripts)).record(environment));
    activation.changes.insert(activation.changes.end(), recorded.changes.begin(), recorded.changes.end());
    activation.scripts = std::move(recorded.scripts);
    return activation;
}

} // namespace containerize::environments

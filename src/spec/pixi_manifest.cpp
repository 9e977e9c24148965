// Reads an environment of a pixi manifest (pixi.toml). What it says of other environments is not checked.
#include "core/filesystem.h"
#include "core/printable.h"
#include "core/text.h"
#include "core/url.h"
#include "spec/conda_environment.h"
#include "spec/locked_lines.h"
#include "spec/package_name.h"
#include "spec/pixi_dependencies.h"
#include "spec/pixi_platform.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace containerize::spec {

namespace {

constexpr const char* default_name = "default";

/// A set of tables with dependencies. The default one's are at the root of the manifest.
struct Feature {
    std::string name;
    const toml::table* table;
    [[nodiscard]] bool is_default() const { return name == default_name; }
};

/// What `platforms` has: a subdir, possibly with virtual packages and a name of its own.
struct Platform {
    std::string name, subdir;
    std::vector<MachineRequirement> machine = {};
};

/// A channel, and its priority if one is written.
struct RankedChannel {
    Located channel;
    std::int64_t priority = 0;
};

/// Entries by their names; those of more specific tables replace others.
using Entries = std::map<std::string, std::pair<std::string, const toml::node*>>;

/// The virtual package for a key of `platforms` or `system-requirements`; empty if there is none on Linux.
std::string virtual_package_of(std::string_view key) {
    if (key.starts_with("__")) return std::string(key);
    for (const auto& [one, name] :
         {std::pair("cuda", "__cuda"), std::pair("glibc", "__glibc"), std::pair("libc", "__glibc"),
          std::pair("linux", "__linux"), std::pair("archspec", "__archspec")})
        if (key == one) return name;
    return {};
}

/// The newer of two requirements for one virtual package.
const MachineRequirement& newer(const MachineRequirement& one, const MachineRequirement& other) {
    const auto wanted = one.package.name == "__archspec" ? "__archspec=1=" + one.package.build
                                                         : one.package.name + "=" + one.package.version;
    return satisfies({other.package}, wanted) ? other : one;
}

class ManifestReader {
public:
    ManifestReader(const TomlFile& toml, const LockChoice& choice) : toml_(toml), choice_(choice) {}

    Result<CondaEnvironment> read() {
        TRY(find_tables());
        TRY(choose_environment());
        TRY(choose_platform());
        TRY(channels());
        TRY(settings());
        for (const auto& feature : features_)
            TRY(take(feature));
        TRY(pip_options());
        if (environment_.dependencies.empty() && environment_.pip.empty() && environment_.variables.empty())
            return fail_input("this pixi environment requests no package", {}, toml_.file().string(),
                              "List packages in [dependencies], or choose another environment with "
                              "--environment.");
        for (auto& [name, requirement] : machine_)
            environment_.machine.push_back(std::move(requirement));
        return std::move(environment_);
    }

private:
    Status find_tables() {
        root_ = &toml_.root();
        if (const auto* of_project = root_->at_path("tool.pixi").as_table();
            of_project != nullptr && !root_->contains("workspace"))
            root_ = of_project;
        TRY(check_pixi_keys(toml_, *root_, "a pixi manifest",
                            {"workspace",
                             "project",
                             "dependencies",
                             "host-dependencies",
                             "build-dependencies",
                             "pypi-dependencies",
                             "pypi-options",
                             "constraints",
                             "system-requirements",
                             "target",
                             "feature",
                             "environments",
                             "activation",
                             "tasks",
                             "package",
                             "dev",
                             "exclude-newer",
                             "pypi-exclude-newer",
                             "tool",
                             "$schema"}));
        for (const char* key : {"exclude-newer", "pypi-exclude-newer"})
            if (const auto* value = root_->get(key))
                return toml_.refuse(*value, std::string("[") + key + "] is not supported",
                                    "--exclude-newer is for all packages",
                                    "Remove it, or give the pixi.lock.");
        workspace_ = TRY(toml_.table(*root_, root_->contains("workspace") ? "workspace" : "project"));
        if (workspace_ == nullptr)
            return fail_input("this pixi manifest has no [workspace]", {}, toml_.file().string(),
                              "Give the manifest of the workspace.");
        return check_workspace();
    }

    Status check_workspace() {
        TRY(check_pixi_keys(toml_, *workspace_, "[workspace]",
                            {"name",
                             "version",
                             "description",
                             "authors",
                             "license",
                             "license-file",
                             "readme",
                             "homepage",
                             "repository",
                             "documentation",
                             "channels",
                             "platforms",
                             "channel-priority",
                             "solve-strategy",
                             "exclude-newer",
                             "conda-pypi-map",
                             "pypi-options",
                             "s3-options",
                             "preview",
                             "requires-pixi",
                             "build-variants",
                             "build-variants-files",
                             "dependencies",
                             "target"}));
        environment_.name = TRY(toml_.text(*workspace_, "name"));
        if (const auto* value = workspace_->get("exclude-newer"))
            environment_.exclude_newer = {.text = TRY(toml_.text(*workspace_, "exclude-newer")),
                                          .where = toml_.where(*value)};
        if (const auto* options = workspace_->get("s3-options"))
            return toml_.refuse(*options, "`s3-options` is not supported",
                                "variables of the environment name the server of S3",
                                "Remove it, and set AWS_ENDPOINT_URL and AWS_REGION.");
        std::error_code failed;
        const auto lock = toml_.file().parent_path() / "pixi.lock";
        if (fs::exists(lock, failed))
            environment_.notes.push_back("the newest packages that fit are chosen. For exactly those of the "
                                         "lock beside the manifest, give " +
                                         lock.string() + ".");
        return {};
    }

    // The environment and its features

    Status choose_environment() {
        const std::string wanted = choice_.environment.empty() ? default_name : choice_.environment;
        const auto* environments = TRY(toml_.table(*root_, "environments"));
        const auto* found = environments == nullptr ? nullptr : environments->get(wanted);
        if (found != nullptr) return take_environment(*found);
        if (wanted == default_name) return add_feature(default_name, *root_);
        std::vector<std::string> names = {default_name};
        for (const auto& name : TRY(toml_.keys(*root_, "environments")))
            if (name != default_name) names.push_back(name);
        return fail_input("this pixi manifest has no environment '" + printable_line(wanted) + "'",
                          "it has " + printable_line(joined(names, ", ")), toml_.file().string(),
                          "Choose one of these with --environment.");
    }

    /// A list of features, or a table.
    Status take_environment(const toml::node& value) {
        const auto* table = value.as_table();
        const auto* features = table == nullptr ? &value : table->get("features");
        bool with_default = true;
        if (table != nullptr) {
            TRY(check_pixi_keys(toml_, *table, "an environment",
                                {"features", "solve-group", "no-default-feature"}));
            if (const auto* without = table->get("no-default-feature")) {
                if (!without->is_boolean())
                    return toml_.refuse(*without, "`no-default-feature` must be true or false");
                with_default = !without->as_boolean()->get();
            }
            if (const auto group = TRY(toml_.text(*table, "solve-group")); !group.empty())
                environment_.notes.push_back(
                    "`solve-group` in " + toml_.where(value) +
                    " has no effect, because only one environment is solved. A pixi.lock has the versions "
                    "of all.");
        }
        if (features != nullptr)
            for (const auto* name : TRY(toml_.strings(*features, "features")))
                TRY(add_feature(name->get(), *name));
        if (with_default && !has_feature(default_name)) TRY(add_feature(default_name, value));
        return {};
    }

    [[nodiscard]] bool has_feature(std::string_view name) const {
        return std::ranges::find(features_, name, &Feature::name) != features_.end();
    }

    Status add_feature(const std::string& name, const toml::node& named_at) {
        if (has_feature(name)) return {};
        if (name == default_name) {
            features_.push_back({.name = name, .table = root_});
            return {};
        }
        const auto* features = TRY(toml_.table(*root_, "feature"));
        const auto* table = features == nullptr ? nullptr : TRY(toml_.table(*features, name));
        if (table == nullptr)
            return toml_.refuse(named_at, "there is no feature '" + printable_line(name) + "'", {},
                                "Correct the name, or add [feature." + printable_line(name) + "].");
        TRY(check_pixi_keys(toml_, *table, "[feature." + name + "]",
                            {"dependencies", "host-dependencies", "build-dependencies", "pypi-dependencies",
                             "pypi-options", "constraints", "system-requirements", "target", "activation",
                             "tasks", "dev", "platforms", "channels", "channel-priority", "solve-strategy"}));
        features_.push_back({.name = name, .table = table});
        return {};
    }

    /// The table with a feature's channels, platforms and strategies.
    [[nodiscard]] const toml::table& settings_of(const Feature& feature) const {
        return feature.is_default() ? *workspace_ : *feature.table;
    }

    // Platforms

    Result<std::string> version_text(const toml::node& value, std::string_view key) const {
        if (const auto* text = value.as_string()) return text->get();
        if (const auto* number = value.as_integer()) return std::to_string(number->get());
        if (value.is_floating_point())
            return toml_.refuse(value, "`" + printable_line(key) + "` must be in quotes",
                                "a number loses zeros at its end", "Write it like \"12.0\".");
        return toml_.refuse(value, "`" + printable_line(key) + "` must be a version");
    }

    Result<MachineRequirement> requirement(std::string_view key, const toml::node& value) const {
        MachineRequirement one{.package = {.name = virtual_package_of(key), .version = {}, .build = "0"},
                               .where = toml_.where(value)};
        const auto* table = value.as_table();
        if (key == "libc" && table != nullptr) {
            const auto family = lower(TRY(toml_.text(*table, "family")));
            if (!family.empty() && family != "glibc" && family != "gnu")
                return toml_.refuse(value, "the C library '" + printable_line(family) + "' is not supported",
                                    {}, "Write \"glibc\".");
            const auto* version = table->get("version");
            one.package.version = version == nullptr ? "0" : TRY(version_text(*version, "version"));
        } else {
            one.package.version = TRY(version_text(value, key));
        }
        if (one.package.name == "__archspec") {
            one.package.build = std::exchange(one.package.version, "1");
            return one;
        }
        if (!conda::Version::parse(one.package.version))
            return toml_.refuse(value, "invalid version of `" + printable_line(key) + "`: '" +
                                           printable_line(one.package.version) + "'");
        return one;
    }

    Result<Platform> platform(const toml::node& value) const {
        if (const auto* text = value.as_string()) return Platform{.name = text->get(), .subdir = text->get()};
        const auto* table = value.as_table();
        if (table == nullptr) return toml_.refuse(value, "a platform must be a name or a table");
        Platform one{.name = TRY(toml_.text(*table, "name")), .subdir = TRY(toml_.text(*table, "platform"))};
        if (one.subdir.empty()) one.subdir = one.name;
        if (one.name.empty()) one.name = one.subdir;
        for (const auto& [key, version] : *table) {
            if (key == "name" || key == "platform" || key == "macos" || key == "osx" || key == "windows")
                continue;
            if (virtual_package_of(key.str()).empty())
                return toml_.refuse(version, "`" + printable_line(key.str()) +
                                                 "` is not a virtual package that containerize knows");
            one.machine.push_back(TRY(requirement(key.str(), version)));
        }
        return one;
    }

    Result<std::vector<Platform>> platforms() const {
        std::vector<Platform> all;
        const auto* list = workspace_->get("platforms");
        if (list == nullptr) return std::vector{Platform{.name = choice_.subdir, .subdir = choice_.subdir}};
        if (!list->is_array()) return toml_.refuse(*list, "`platforms` must be a list");
        for (const auto& one : *list->as_array())
            all.push_back(TRY(platform(one)));
        return all;
    }

    /// Keeps the platforms that each feature is for.
    Status keep_common(std::vector<Platform>& all) const {
        for (const auto& feature : features_) {
            if (feature.is_default() || !feature.table->contains("platforms")) continue;
            const auto own = TRY(toml_.texts(*feature.table, "platforms"));
            std::erase_if(all, [&](const Platform& one) {
                return std::ranges::find(own, one.name) == own.end() &&
                       std::ranges::find(own, one.subdir) == own.end();
            });
        }
        return {};
    }

    Status choose_platform() {
        auto all = TRY(platforms());
        for (const auto& one : all)
            platform_names_.insert(one.name);
        TRY(keep_common(all));
        std::set<std::string> others;
        for (const auto& one : all)
            others.insert(one.subdir);
        std::erase_if(all, [&](const Platform& one) { return one.subdir != choice_.subdir; });
        if (all.empty())
            return fail_input("this pixi environment is not for " + choice_.subdir,
                              others.empty() ? "" : "it is for " + printable_line(joined(others, ", ")),
                              toml_.file().string(), "Add the platform to `platforms`.");
        platform_ = TRY(first_that_fits(all));
        for (const auto& one : platform_.machine)
            require(one);
        return {};
    }

    Result<Platform> first_that_fits(const std::vector<Platform>& all) const {
        if (all.size() == 1) return all.front();
        const auto machine = TRY(choice_.machine());
        std::string needs;
        for (const auto& one : all) {
            std::vector<std::string> wanted;
            for (const auto& [package, where] : one.machine)
                wanted.push_back(package.name + "=" + package.version +
                                 (package.build == "0" ? "" : "=" + package.build));
            if (std::ranges::all_of(wanted, [&](const auto& text) { return satisfies(machine, text); }))
                return one;
            needs += "\n- " + printable_line(one.name + " needs " + joined(wanted, ", "));
        }
        return fail_input("this machine matches none of the platforms for " + choice_.subdir, needs,
                          toml_.file().string(),
                          "For nodes that have CUDA, give its version, such as --cuda 12.4.");
    }

    void require(const MachineRequirement& one) {
        const auto [known, is_new] = machine_.emplace(one.package.name, one);
        if (!is_new) known->second = MachineRequirement(newer(one, known->second));
    }

    // Channels and how packages are chosen

    Result<RankedChannel> channel(const toml::node& value) const {
        RankedChannel one;
        if (const auto* text = value.as_string()) {
            one.channel.text = text->get();
        } else if (const auto* table = value.as_table()) {
            TRY(check_pixi_keys(toml_, *table, "a channel", {"channel", "priority"}));
            one.channel.text = TRY(toml_.text(*table, "channel"));
            const auto* priority = table->get("priority");
            if (priority != nullptr && !priority->is_integer())
                return toml_.refuse(*priority, "`priority` must be a whole number");
            if (priority != nullptr) one.priority = priority->as_integer()->get();
        }
        one.channel.where = toml_.where(value);
        auto& text = one.channel.text;
        text = trimmed(text);
        if (text.empty())
            return toml_.refuse(value, "a channel must be a name, a URL, a path or a table with `channel`");
        if (text.starts_with("./") || text.starts_with("../"))
            text = fs::absolute(toml_.file().parent_path() / text).lexically_normal().string();
        return one;
    }

    /// All features' channels; those of the environment's own features come first.
    Status channels() {
        std::vector<RankedChannel> all;
        for (const auto& feature : features_) {
            const auto* list = settings_of(feature).get("channels");
            if (list == nullptr) list = workspace_->get("channels");
            if (list == nullptr) continue;
            if (!list->is_array()) return toml_.refuse(*list, "`channels` must be a list");
            for (const auto& one : *list->as_array())
                all.push_back(TRY(channel(one)));
        }
        std::ranges::stable_sort(all, std::greater(), &RankedChannel::priority);
        std::set<std::string> known;
        for (auto& [one, priority] : all)
            if (known.insert(one.text).second) environment_.channels.push_back(std::move(one));
        environment_.no_defaults = true; // pixi takes packages from no other channel
        if (environment_.channels.empty())
            return fail_input("this pixi environment has no channels", {}, toml_.file().string(),
                              "List them in [workspace]: `channels = [\"conda-forge\"]`.");
        return {};
    }

    /// The value of a key that features of one environment must agree on; that of the workspace is for those
    /// that have none.
    Result<Located> common_setting(std::string_view key) const {
        Located common;
        for (const auto& feature : features_) {
            if (feature.is_default() || !feature.table->contains(key)) continue;
            const Located own{.text = TRY(toml_.text(*feature.table, key)),
                              .where = toml_.where(*feature.table->get(key))};
            if (!common.text.empty() && common.text != own.text)
                return fail_input("two features of this environment have another `" + std::string(key) + "`",
                                  "the other one is in " + common.where, own.where, "Remove one of them.");
            common = own;
        }
        if (common.text.empty() && workspace_->contains(key))
            common = {.text = TRY(toml_.text(*workspace_, key)), .where = toml_.where(*workspace_->get(key))};
        return common;
    }

    Status settings() {
        const auto priority = TRY(common_setting("channel-priority"));
        if (!priority.text.empty() && priority.text != "strict" && priority.text != "disabled")
            return fail_input("`channel-priority` must be strict or disabled", {}, priority.where,
                              "Correct it, or remove it: strict is the default.");
        environment_.channel_priority =
            priority.text == "disabled" ? conda::ChannelPriority::disabled : conda::ChannelPriority::strict;
        const auto strategy = TRY(common_setting("solve-strategy"));
        if (strategy.text.empty() || strategy.text == "highest") return {};
        return fail_input("`solve-strategy = \"" + printable_line(strategy.text) + "\"` is not supported",
                          "the newest versions that fit are chosen", strategy.where,
                          "Remove it, or lock with `pixi lock`, and give the pixi.lock.");
    }

    // Packages and variables

    /// A feature's table and those of its targets for this platform, the most specific last.
    Result<std::vector<const toml::table*>> tables_of(const Feature& feature) const {
        std::vector<const toml::table*> tables = {feature.table};
        const auto* targets = TRY(toml_.table(*feature.table, "target"));
        if (targets == nullptr) return tables;
        for (const auto& [name, value] : *targets) {
            constexpr auto others = std::to_array<std::string_view>({"unix", "linux", "osx", "macos", "win"});
            const std::string target(name.str());
            if (std::ranges::find(others, target) == others.end() && !conda::is_subdir(target) &&
                !platform_names_.contains(target))
                return toml_.refuse(value, "'" + printable_line(target) + "' is not a platform", {},
                                    "Write linux, unix, or a platform such as linux-64.");
        }
        std::vector<std::string> fitting = {"unix", "linux", platform_.subdir};
        if (platform_.name != platform_.subdir) fitting.push_back(platform_.name);
        for (const auto& target : fitting) {
            const auto* table = TRY(toml_.table(*targets, target));
            if (table == nullptr) continue;
            TRY(check_pixi_keys(toml_, *table, "[target." + target + "]",
                                {"dependencies", "host-dependencies", "build-dependencies",
                                 "pypi-dependencies", "pypi-options", "constraints", "activation", "tasks",
                                 "dev"}));
            tables.push_back(table);
        }
        return tables;
    }

    Result<Entries> entries(const std::vector<const toml::table*>& tables,
                            std::initializer_list<std::string_view> keys,
                            std::string (*normalised)(std::string_view)) const {
        Entries entries;
        for (const auto* table : tables)
            for (const auto key : keys)
                if (const auto* list = TRY(toml_.table(*table, key)))
                    for (const auto& [name, value] : *list)
                        entries[normalised(name.str())] = {std::string(name.str()), &value};
        return entries;
    }

    Status take(const Feature& feature) {
        const auto tables = TRY(tables_of(feature));
        for (const auto* table : tables)
            if (const auto* dev = table->get("dev");
                dev != nullptr && !(dev->is_table() && dev->as_table()->empty()))
                return toml_.refuse(*dev, "[dev] is not supported",
                                    "containerize does not read what a package needs for its build",
                                    "List these packages in [dependencies].");
        // pixi installs what a build needs, too.
        const auto conda =
            TRY(entries(tables, {"dependencies", "host-dependencies", "build-dependencies"}, lower));
        for (const auto& [key, entry] : conda)
            environment_.dependencies.push_back(
                TRY(pixi_conda_dependency(toml_, entry.first, *entry.second)));
        const auto constraints = TRY(entries(tables, {"constraints"}, lower));
        for (const auto& [key, entry] : constraints)
            TRY(take_constraint(entry.first, *entry.second));
        const auto pypi = TRY(entries(tables, {"pypi-dependencies"}, normalised_name));
        for (const auto& [key, entry] : pypi)
            environment_.pip.push_back(TRY(pixi_requirement(toml_, entry.first, *entry.second)));
        TRY(take_system_requirements(feature));
        return take_activation(tables);
    }

    Status take_constraint(const std::string& name, const toml::node& value) {
        auto constraint = TRY(pixi_conda_dependency(toml_, name, value));
        if (!constraint.spec.channel.empty())
            return toml_.refuse(value, "a constraint cannot have a channel", {},
                                "Request the package in [dependencies] with its channel.");
        environment_.constraints.push_back(std::move(constraint));
        return {};
    }

    Status take_system_requirements(const Feature& feature) {
        const auto* table = TRY(toml_.table(*feature.table, "system-requirements"));
        if (table == nullptr) return {};
        for (const auto& [key, value] : *table) {
            if (key == "macos" || key == "unix") continue; // which every Linux is
            if (virtual_package_of(key.str()).empty())
                return toml_.refuse(value,
                                    "`" + printable_line(key.str()) +
                                        "` is not a system requirement that containerize knows",
                                    {}, "It knows linux, libc, cuda and archspec.");
            require(TRY(requirement(key.str(), value)));
        }
        return {};
    }

    Status take_activation(const std::vector<const toml::table*>& tables) {
        std::map<std::string, std::string> variables;
        for (const auto* table : tables) {
            const auto* activation = TRY(toml_.table(*table, "activation"));
            if (activation == nullptr) continue;
            TRY(check_pixi_keys(toml_, *activation, "[activation]", {"env", "scripts"}));
            if (const auto* scripts = activation->get("scripts"))
                environment_.notes.push_back("the activation scripts in " + toml_.where(*scripts) +
                                             " are not run. --environ SCRIPT runs one during the build, and "
                                             "sets what it changes at every launch.");
            if (const auto* list = TRY(toml_.table(*activation, "env")))
                for (const auto& [name, value] : *list)
                    variables[std::string(name.str())] = TRY(variable_value(name.str(), value));
        }
        for (const auto& [name, value] : variables)
            if (known_variables_.insert(name).second) environment_.variables.emplace_back(name, value);
        return {};
    }

    Result<std::string> variable_value(std::string_view name, const toml::node& value) const {
        if (name.empty() || name.find('=') != name.npos)
            return toml_.refuse(value, "'" + printable_line(name) + "' is not a valid variable name");
        const auto* text = value.as_string();
        if (text == nullptr)
            return toml_.refuse(value, "the value of '" + printable_line(name) + "' must be a string", {},
                                "Write it in quotes.");
        if (text->get().find('\0') != std::string::npos)
            return toml_.refuse(value,
                                "the value of '" + printable_line(name) + "' contains a NUL character");
        if (text->get().find_first_of("$`") != std::string::npos)
            return toml_.refuse(value, "the value of '" + printable_line(name) + "' contains '$' or '`'",
                                "pixi lets a shell expand it, and containerize does not",
                                "Set the variable in a script, and give that with --environ.");
        return text->get();
    }

    Status pip_options() {
        PixiPipOptions options(toml_);
        for (const auto& feature : features_)
            for (const auto* table : TRY(tables_of(feature)))
                if (const auto* own = TRY(toml_.table(*table, "pypi-options"))) TRY(options.add(*own, false));
        if (const auto* own = TRY(toml_.table(*workspace_, "pypi-options"))) TRY(options.add(*own, true));
        if (environment_.pip.empty()) return {};
        auto lines = options.lines();
        environment_.pip.insert(environment_.pip.begin(), lines.begin(), lines.end());
        return {};
    }

    const TomlFile& toml_;
    const LockChoice& choice_;
    const toml::table* root_ = nullptr;
    const toml::table* workspace_ = nullptr;
    std::vector<Feature> features_; ///< of the environment; the default one is last
    Platform platform_;
    std::set<std::string> platform_names_;
    std::map<std::string, MachineRequirement> machine_; ///< by name
    std::set<std::string> known_variables_;
    CondaEnvironment environment_;
};

} // namespace

Result<CondaEnvironment> read_pixi_toml(const fs::path& file, const LockChoice& choice) {
    const auto toml = TRY(TomlFile::read(file));
    return ManifestReader(toml, choice).read();
}

} // namespace containerize::spec

#include "core/filesystem.h"
#include "core/text.h"
#include "core/variables.h"
#include "spec/conda_environment.h"
#include "util/similar_names.h"
#include "util/yaml_file.h"

#include <algorithm>
#include <array>
#include <utility>

namespace containerize::spec {

namespace {

/// Keys that have no effect here and are not worth a note.
constexpr auto silent_keys =
    std::to_array<std::string_view>({"platforms", "category", "dependencies-lock", "plugins"});

const std::vector<std::string> keys = {"name",      "channels", "dependencies",
                                       "variables", "prefix",   "channel_priority"};

class EnvironmentFileReader {
public:
    EnvironmentFileReader(const YamlFile& yaml, const fs::path& file) : yaml_(yaml), file_(file) {}

    Result<CondaEnvironment> read() {
        const auto& root = yaml_.root();
        if (!root.IsDefined() || root.IsNull())
            return fail_input("this environment file is empty", {}, file_.string(),
                              "List packages under `dependencies:`.");
        if (!root.IsMap())
            return yaml_.refuse(root,
                                "an environment file must be a mapping with keys such as `dependencies:`",
                                "List packages under `dependencies:`.");
        TRY(yaml_.each(root,
                       [this](const YAML::Node& key, const YAML::Node& value) { return top(key, value); }));
        if (!has_dependencies_ && environment_.variables.empty())
            return fail_input("this environment file has no `dependencies:`", {}, file_.string(),
                              "List packages there, one per line.");
        return std::move(environment_);
    }

private:
    Status top(const YAML::Node& name, const YAML::Node& value) {
        const auto& key = name.Scalar();
        if (key == "name") return text(value, key, environment_.name);
        if (key == "channels") return channels(value);
        if (key == "dependencies") {
            has_dependencies_ = true;
            return dependencies(value);
        }
        if (key == "variables") return variables(value);
        if (key == "channel_priority") return priority(value);
        if (key == "prefix") {
            environment_.notes.push_back("`prefix:` in " + yaml_.where(value) +
                                         " is ignored: --prefix sets the directory.");
            return {};
        }
        if (std::ranges::find(silent_keys, std::string_view(key)) != silent_keys.end()) return {};
        // A misspelt key would silently drop everything below it, so a note is not enough.
        if (const auto meant = similar_names(keys, key); !meant.empty())
            return yaml_.refuse(name, "`" + key + ":` is not a key of environment files",
                                "Did you mean `" + meant.front() + ":`?");
        environment_.notes.push_back("`" + key + ":` in " + yaml_.where(value) +
                                     " is ignored, because it has no effect here.");
        return {};
    }

    Status text(const YAML::Node& value, const std::string& key, std::string& into) const {
        if (value.IsNull()) return {};
        if (!value.IsScalar()) return yaml_.refuse(value, "`" + key + ":` must be a single value");
        into = value.Scalar();
        return {};
    }

    /// Calls `visit` for each item of the list below `key`.
    Status list(const YAML::Node& value, const std::string& key,
                const std::function<Status(const YAML::Node&)>& visit) const {
        if (value.IsNull()) return {};
        if (!value.IsSequence())
            return yaml_.refuse(value, "`" + key + ":` must be a list",
                                "Start each line below it with '- '.");
        for (const auto& one : value)
            TRY(visit(one));
        return {};
    }

    Status channels(const YAML::Node& value) {
        return list(value, "channels", [this](const YAML::Node& one) -> Status {
            if (!one.IsScalar() || trimmed(one.Scalar()).empty())
                return yaml_.refuse(one, "a channel must be a name, a URL or a path");
            auto channel = expand_variables(trimmed(one.Scalar()), current_environment());
            if (channel == "nodefaults") {
                environment_.no_defaults = true;
                return {};
            }
            // Paths are relative to the environment file.
            if (channel.starts_with("./") || channel.starts_with("../"))
                channel = (file_.parent_path() / channel).lexically_normal().string();
            environment_.channels.push_back({.text = std::move(channel), .where = yaml_.where(one)});
            return {};
        });
    }

    Status dependencies(const YAML::Node& value) {
        return list(value, "dependencies", [this](const YAML::Node& one) -> Status {
            if (one.IsMap())
                return yaml_.each(one, [this](const YAML::Node& key, const YAML::Node& inner) {
                    return section(key.Scalar(), inner);
                });
            return dependency(one);
        });
    }

    Status dependency(const YAML::Node& one) {
        if (!one.IsScalar() || trimmed(one.Scalar()).empty())
            return yaml_.refuse(one, "a dependency must be a package specification",
                                "Write it as `- numpy=1.26`.");
        // YAML joins a list item that is indented too far with the one above.
        if (one.Scalar().find(" - ") != std::string::npos)
            return yaml_.refuse(one, "two packages are on one line: '" + one.Scalar() + "'",
                                "Indent all items of a list by the same amount.");
        auto spec = conda::parse_match_spec(one.Scalar());
        if (!spec) return yaml_.refuse(one, what_and_why(spec.error()), spec.error().hint);
        environment_.dependencies.push_back({.spec = std::move(*spec), .where = yaml_.where(one)});
        return {};
    }

    /// Reads "pip:" or mamba's "sel(linux):".
    Status section(const std::string& key, const YAML::Node& value) {
        if (key == "pip")
            return list(value, key, [this](const YAML::Node& one) -> Status {
                if (!one.IsScalar() || trimmed(one.Scalar()).empty())
                    return yaml_.refuse(one, "an item below `pip:` must be a requirement or a pip option");
                environment_.pip.push_back({.text = one.Scalar(), .where = yaml_.where(one)});
                return {};
            });
        if (key.starts_with("sel(") && key.ends_with(')')) {
            const auto platform = trimmed(std::string_view(key).substr(4, key.size() - 5));
            if (platform == "osx" || platform == "win") return {};
            if (platform != "linux" && platform != "unix")
                return yaml_.refuse(value, "`" + key + ":` is not a known platform",
                                    "Write sel(linux), sel(unix), sel(osx) or sel(win).");
            if (value.IsScalar()) return dependency(value);
            return list(value, key, [this](const YAML::Node& one) { return dependency(one); });
        }
        return yaml_.refuse(value, "`" + key + ":` is not a section of `dependencies:`",
                            value.IsScalar() ? "For a version, write `- " + key + "=" + value.Scalar() + "`."
                                             : "Sections are `pip:` and `sel(linux):`.");
    }

    Status variables(const YAML::Node& value) {
        if (value.IsNull()) return {};
        if (!value.IsMap())
            return yaml_.refuse(value, "`variables:` must be a mapping",
                                "Write `NAME: value` lines below it.");
        return yaml_.each(value, [this](const YAML::Node& key, const YAML::Node& one) -> Status {
            const auto& name = key.Scalar();
            if (name.empty() || name.find('=') != std::string::npos)
                return yaml_.refuse(one, "'" + name + "' is not a valid variable name");
            if (!one.IsScalar() && !one.IsNull())
                return yaml_.refuse(one, "a variable's value must be a single value");
            environment_.variables.emplace_back(name, one.IsNull() ? "" : one.Scalar());
            return {};
        });
    }

    Status priority(const YAML::Node& value) {
        const std::string word = value.IsScalar() ? value.Scalar() : "";
        if (word == "strict")
            environment_.channel_priority = conda::ChannelPriority::strict;
        else if (word == "flexible")
            environment_.channel_priority = conda::ChannelPriority::flexible;
        else if (word == "disabled")
            environment_.channel_priority = conda::ChannelPriority::disabled;
        else
            return yaml_.refuse(value, "`channel_priority:` must be strict, flexible or disabled");
        return {};
    }

    const YamlFile& yaml_;
    const fs::path& file_;
    CondaEnvironment environment_;
    bool has_dependencies_ = false;
};

} // namespace

Result<CondaEnvironment> read_environment_yaml(const fs::path& file) {
    auto yaml = TRY(YamlFile::read(file));
    return EnvironmentFileReader(yaml, file).read();
}

} // namespace containerize::spec

// Reads pixi.lock, versions 4 to 7.
#include "core/text.h"
#include "core/url.h"
#include "spec/locked_package.h"
#include "spec/pixi_platform.h"
#include "util/yaml_file.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace containerize::spec {

namespace {

namespace fs = std::filesystem;

constexpr auto known_versions = std::to_array<std::string_view>({"4", "5", "6", "7"});

/// The packages of an environment for one platform.
struct Row {
    std::string name;
    std::vector<std::string> virtual_packages = {}; ///< required of the machine
    YAML::Node packages;
};

class PixiLockReader {
public:
    PixiLockReader(const YamlFile& yaml, const fs::path& file, const LockChoice& choice)
        : yaml_(yaml), file_(file), choice_(choice) {
        locked_.of_pip.emplace();
        for (const auto& one : yaml_.root()["packages"]) {
            if (!one.IsMap()) continue;
            for (const char* key : {"conda", "pypi", "url", "path"})
                if (const auto place = scalar(one, key); !place.empty()) details_.emplace(place, one);
        }
    }

    Result<LockedEnvironment> read() {
        auto environment = TRY(choose_environment());
        for (const auto& channel : environment["channels"])
            if (channel.IsMap()) locked_.channels.push_back(without_credentials(scalar(channel, "url")));
        for (const auto& one : environment["packages"])
            if (one.second.IsSequence() && one.second.size() > 0) platforms_.insert(one.first.Scalar());
        auto rows = rows_of(environment["packages"]);
        auto row = TRY(choose_row(rows));
        for (const auto& package : row.packages)
            TRY(take(package));
        if (locked_.packages.empty()) return refuse_platform(file_, choice_.subdir, platforms_);
        return std::move(locked_);
    }

private:
    Result<YAML::Node> choose_environment() {
        const std::string wanted = choice_.environment.empty() ? "default" : choice_.environment;
        const auto environments = yaml_.root()["environments"];
        if (environments.IsMap())
            if (YAML::Node found = environments[wanted]; found.IsDefined() && found.IsMap()) return found;
        std::vector<std::string> names;
        if (environments.IsMap())
            for (const auto& one : environments)
                names.push_back(one.first.Scalar());
        return fail_input("this pixi lock file has no environment '" + wanted + "'",
                          "it has " + (names.empty() ? "none" : joined(names, ", ")), file_.string(),
                          "Choose one of these with --environment.");
    }

    /// The rows for this subdir, in pixi's order of preference.
    [[nodiscard]] std::vector<Row> rows_of(const YAML::Node& packages) const {
        std::vector<Row> rows;
        if (!packages.IsDefined() || !packages.IsMap()) return rows;
        bool of_this_name = false;
        // Since version 7 a platform may have a name other than its subdir.
        for (const auto& platform : yaml_.root()["platforms"]) {
            if (!platform.IsMap()) continue;
            const auto name = scalar(platform, "name");
            const auto subdir = scalar(platform, "subdir");
            of_this_name = of_this_name || name == choice_.subdir;
            const YAML::Node listed = packages[name];
            if ((subdir.empty() ? name : subdir) != choice_.subdir || !listed.IsDefined()) continue;
            Row row{.name = name, .packages = listed};
            for (const auto& one : platform["virtual-packages"])
                if (one.IsScalar()) row.virtual_packages.push_back(one.Scalar());
            rows.push_back(std::move(row));
        }
        if (const YAML::Node listed = packages[choice_.subdir]; !of_this_name && listed.IsDefined())
            rows.push_back({.name = choice_.subdir, .packages = listed});
        return rows;
    }

    Result<Row> choose_row(std::vector<Row>& rows) const {
        if (rows.empty()) return refuse_platform(file_, choice_.subdir, platforms_);
        if (rows.size() == 1) return std::move(rows.front());
        auto machine = TRY(choice_.machine());
        std::string needs;
        for (auto& row : rows) {
            if (std::ranges::all_of(row.virtual_packages,
                                    [&](const auto& one) { return satisfies(machine, one); }))
                return std::move(row);
            needs += "\n- " + row.name + " needs " + joined(row.virtual_packages, ", ");
        }
        return fail_input("this machine matches none of the lock file's platforms for " + choice_.subdir,
                          needs, file_.string(),
                          "For nodes that have CUDA, give its version, such as --cuda 12.4.");
    }

    Status take(const YAML::Node& entry) {
        if (const auto pypi = scalar(entry, "pypi"); !pypi.empty()) return take_requirement(entry, pypi);
        const auto conda = scalar(entry, "conda");
        if (conda.empty() || !(conda.ends_with(".conda") || conda.ends_with(".tar.bz2")))
            return yaml_.refuse(entry, "this package must be built from source, which containerize cannot do",
                                "Build it with `pixi build`, and lock the resulting package.");
        const auto detail = TRY(details_of(entry, conda));
        auto record = TRY(record_of_url(conda, file_, yaml_.where(entry)));
        record.sha256 = scalar(detail, "sha256");
        record.md5 = scalar(detail, "md5");
        record.depends = dependency_list(detail["depends"]);
        if (record.sha256.empty() && record.md5.empty())
            return refuse_unverifiable(record.name, yaml_.where(entry));
        add_conda_package(std::move(record),
                          {.name = scalar(detail, "name"),
                           .version = scalar(detail, "version"),
                           .build = scalar(detail, "build")},
                          locked_);
        return {};
    }

    Status take_requirement(const YAML::Node& entry, const std::string& location) {
        const auto detail = TRY(details_of(entry, location));
        return add_requirement({.name = scalar(detail, "name"),
                                .version = scalar(detail, "version"),
                                .location = location,
                                .sha256 = scalar(detail, "sha256"),
                                .editable = scalar(detail, "editable") == "true"},
                               file_, yaml_.where(entry), locked_);
    }

    /// The package's entry, with checksums, in the top-level list `packages:`.
    [[nodiscard]] Result<YAML::Node> details_of(const YAML::Node& entry, const std::string& place) const {
        const auto found = details_.find(place);
        if (found != details_.end()) return found->second;
        return yaml_.refuse(entry, "this package is missing in the lock file's `packages:`",
                            "Lock the environment again. A part of the file is missing.");
    }

    const YamlFile& yaml_;
    const fs::path& file_;
    const LockChoice& choice_;
    std::map<std::string, YAML::Node> details_;
    std::set<std::string> platforms_; ///< of the environment
    LockedEnvironment locked_;
};

} // namespace

Result<LockedEnvironment> read_pixi_lock(const fs::path& file, const LockChoice& choice) {
    auto yaml = YamlFile::read(file, most_nodes_of_lock);
    if (!yaml) return fail(of_lock(std::move(yaml.error()), "pixi lock file"));
    const auto refuse_without = [&file](const std::string& key) {
        return refuse_incomplete(file, "pixi lock file", key);
    };
    if (const auto key = missing_key(yaml->root(), {"version"}); !key.empty()) return refuse_without(key);
    const auto version = scalar(yaml->root(), "version");
    if (std::ranges::find(known_versions, version) == known_versions.end())
        return yaml->refuse(yaml->root()["version"],
                            "unknown version of the pixi lock format: '" + version + "'",
                            "Versions 4 to 7 are supported.");
    const auto missing = missing_key(yaml->root(), {"environments", "packages"});
    if (!missing.empty()) return refuse_without(missing);
    return PixiLockReader(*yaml, file, choice).read();
}

} // namespace containerize::spec

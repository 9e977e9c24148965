// Reads conda-lock.yml, version 1.
#include "core/text.h"
#include "spec/locked_package.h"
#include "util/yaml_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace containerize::spec {

namespace {

namespace fs = std::filesystem;

/// Collects the packages of the file.
class CondaLockReader {
public:
    CondaLockReader(const YamlFile& yaml, const fs::path& file, const LockChoice& choice)
        : yaml_(yaml), file_(file), choice_(choice) {
        locked_.of_pip.emplace();
    }

    Status take(const YAML::Node& package) {
        if (!package.IsMap()) return yaml_.refuse(package, "a package must be a mapping");
        const auto platform = scalar(package, "platform");
        platforms_.insert(platform);
        if (platform != choice_.subdir || !is_wanted(package)) return {};
        // A package in several categories is listed once for each.
        const auto url = scalar(package, "url");
        if (!url.empty() && !taken_.insert(url).second) return {};
        const auto where = yaml_.where(package);
        const auto hash = package["hash"];
        const auto sha256 = hash.IsMap() ? scalar(hash, "sha256") : std::string();
        if (scalar(package, "manager") == "pip")
            return add_requirement({.name = scalar(package, "name"),
                                    .version = scalar(package, "version"),
                                    .location = url,
                                    .sha256 = sha256},
                                   file_, where, locked_);
        auto record = TRY(record_of_url(url, file_, where));
        record.sha256 = sha256;
        record.md5 = hash.IsMap() ? scalar(hash, "md5") : std::string();
        record.depends = dependency_list(package["dependencies"]);
        if (record.sha256.empty() && record.md5.empty()) return refuse_unverifiable(record.name, where);
        add_conda_package(std::move(record),
                          {.name = scalar(package, "name"),
                           .version = scalar(package, "version"),
                           .build = scalar(package, "build")},
                          locked_);
        return {};
    }

    Result<LockedEnvironment> finish() {
        if (!platforms_.contains(choice_.subdir)) return refuse_platform(file_, choice_.subdir, platforms_);
        for (const auto& category : choice_.categories)
            if (!categories_.contains(category))
                return fail_input("this lock file has no category '" + category + "' for " + choice_.subdir,
                                  "it has " + (categories_.empty() ? "none" : joined(categories_, ", ")),
                                  file_.string(), "Give one of these categories.");
        if (locked_.packages.empty()) return refuse_platform(file_, choice_.subdir, platforms_);
        for (const auto& [category, count] : left_out_)
            locked_.notes.push_back(std::to_string(count) + " packages of the category '" + category +
                                    "' are left out. --category " + category + " includes them.");
        return std::move(locked_);
    }

private:
    bool is_wanted(const YAML::Node& package) {
        auto category = scalar(package, "category");
        if (category.empty()) category = "main";
        categories_.insert(category);
        if (category == "main" || std::ranges::find(choice_.categories, category) != choice_.categories.end())
            return true;
        ++left_out_[category];
        return false;
    }

    const YamlFile& yaml_;
    const fs::path& file_;
    const LockChoice& choice_;
    LockedEnvironment locked_;
    std::set<std::string> platforms_, categories_, taken_;
    std::map<std::string, std::size_t> left_out_;
};

} // namespace

Result<LockedEnvironment> read_conda_lock(const fs::path& file, const LockChoice& choice) {
    auto yaml = YamlFile::read(file, most_nodes_of_lock);
    if (!yaml) return fail(of_lock(std::move(yaml.error()), "conda-lock file"));
    const auto missing = missing_key(yaml->root(), {"package"});
    if (!missing.empty()) return refuse_incomplete(file, "conda-lock file", missing);
    if (const auto version = scalar(yaml->root(), "version"); !version.empty() && version != "1")
        return yaml->refuse(yaml->root()["version"],
                            "unknown version of the conda-lock format: '" + version + "'",
                            "Version 1 is supported.");
    const auto packages = yaml->root()["package"];
    if (!packages.IsSequence())
        return yaml->refuse(yaml->root(), "this conda-lock file has no `package:` list");
    CondaLockReader reader(*yaml, file, choice);
    for (const auto& package : packages)
        TRY(reader.take(package));
    return reader.finish();
}

} // namespace containerize::spec

// Reads Pipfile.lock, version 6. It is JSON, which is YAML: so mistakes can be shown with their line.
#include "core/printable.h"
#include "core/text.h"
#include "spec/locked_lines.h"
#include "spec/package_name.h"
#include "util/yaml_file.h"

#include <map>
#include <utility>

namespace containerize::spec {

namespace {

namespace fs = std::filesystem;

class PipfileLockReader {
public:
    PipfileLockReader(const YamlFile& yaml, const fs::path& file, const LockChoice& choice)
        : yaml_(yaml), file_(file), choice_(choice), facts_(facts_for(choice)), lines_(file) {}

    Result<ConvertedFile> read() {
        const auto meta = yaml_.root()["_meta"];
        TRY(check_version(meta));
        TRY(read_sources(meta["sources"]));
        TRY(check_parts(choice_.groups, groups(), "--group", file_));
        TRY(take_category("default"));
        for (const auto& name : groups())
            if (facts_.groups.contains(normalised_name(name))) TRY(take_category(category_of(name)));
        for (const auto& [name, wanted] : wanted_)
            TRY(add(name, wanted));
        auto converted = TRY(lines_.finish());
        converted.python = TRY(python_of(meta["requires"]));
        converted.notes = std::move(notes_);
        return converted;
    }

private:
    struct Wanted {
        YAML::Node package;
        Marker marker; ///< of all chosen categories
        std::string where;
    };

    Status check_version(const YAML::Node& meta) const {
        if (!meta.IsDefined() || !meta.IsMap()) return refuse_incomplete(file_, "Pipfile.lock", "_meta");
        if (const auto version = scalar(meta, "pipfile-spec"); version != "6")
            return yaml_.refuse(
                meta, "unknown version of the Pipfile.lock format: '" + printable_line(version) + "'",
                "Version 6 is supported.");
        return {};
    }

    Status read_sources(const YAML::Node& sources) {
        for (const auto& one : sources) {
            if (!one.IsMap()) return yaml_.refuse(one, "a source must be a mapping");
            TRY(lines_.add_index(scalar(one, "url"), yaml_.where(one)));
        }
        return {};
    }

    /// pipenv's option for the category `develop` is --dev.
    static std::string category_of(const std::string& group) { return group == "dev" ? "develop" : group; }

    [[nodiscard]] std::vector<std::string> groups() const {
        std::vector<std::string> names;
        for (const auto& entry : yaml_.root()) {
            const auto& name = entry.first.Scalar();
            if (name == "_meta" || name == "default") continue;
            names.push_back(name);
            if (name == "develop") names.emplace_back("dev");
        }
        return names;
    }

    Status take_category(const std::string& name) {
        const auto category = yaml_.root()[name];
        if (!category.IsDefined()) return refuse_incomplete(file_, "Pipfile.lock", name);
        if (!category.IsMap()) return yaml_.refuse(category, "a category of packages must be a mapping");
        return yaml_.each(category, [&](const YAML::Node& key, const YAML::Node& value) {
            return take(key.Scalar(), value, yaml_.where(key));
        });
    }

    Status take(const std::string& name, const YAML::Node& package, const std::string& where) {
        if (!package.IsMap()) return yaml_.refuse(package, "a package must be a mapping");
        const auto marker = TRY(marker_at(scalar(package, "markers"), facts_, where));
        if (marker.is_never()) return {};
        const auto [first, is_new] =
            wanted_.emplace(name, Wanted{.package = package, .marker = marker, .where = where});
        if (is_new) return {};
        for (const char* key : {"version", "git", "ref", "subdirectory", "path", "file"})
            if (scalar(first->second.package, key) != scalar(package, key))
                return fail_input("'" + printable_line(name) + "' has other versions in other categories", {},
                                  where, "Choose one of the categories, or lock again.");
        first->second.marker |= marker;
        if (first->second.marker.is_too_complex())
            return fail_input("the markers of '" + printable_line(name) + "' are too complex", {}, where,
                              "Choose one of the categories.");
        return {};
    }

    Status add(const std::string& name, const Wanted& wanted) {
        const auto& [package, marker, where] = wanted;
        const auto version = scalar(package, "version");
        std::vector<std::string> checksums;
        for (const auto& one : package["hashes"])
            if (one.IsScalar()) checksums.push_back(one.Scalar());
        if (const auto git = scalar(package, "git"); !git.empty())
            return lines_.add(repository(name, git, package), marker, where);
        for (const char* key : {"path", "file"})
            if (const auto place = scalar(package, key); !place.empty())
                return lines_.add({.name = name, .location = place, .sha256 = only_sha256(checksums)}, marker,
                                  where);
        if (!version.starts_with("==")) return leave_out(name, marker, where);
        return lines_.add({.name = name,
                           .version = version.substr(2),
                           .checksums = std::move(checksums),
                           .marker = marker,
                           .where = where});
    }

    /// pipenv writes no version for a package that its own Python or platform does not need.
    Status leave_out(const std::string& name, const Marker& marker, const std::string& where) {
        if (marker.is_always())
            return fail_input(
                "the lock has no exact version of '" + printable_line(name) + "'", {}, where,
                "Lock it again on this platform: pipenv leaves out the versions of packages for "
                "other platforms.");
        notes_.push_back("'" + printable_line(name) + "' is left out, because " + file_.string() +
                         " has no version of it. It is only needed if " + marker.text() + ".");
        return {};
    }

    static LockedRequirement repository(const std::string& name, const std::string& url,
                                        const YAML::Node& package) {
        const auto directory = scalar(package, "subdirectory");
        return {.name = name, .location = git_location(url, scalar(package, "ref"), directory)};
    }

    [[nodiscard]] Result<Located> python_of(const YAML::Node& requires_node) const {
        if (!requires_node.IsDefined() || !requires_node.IsMap()) return Located{};
        const auto where = yaml_.where(requires_node);
        if (const auto exact = scalar(requires_node, "python_full_version"); !exact.empty())
            return python_versions("==" + exact, where);
        const auto version = scalar(requires_node, "python_version");
        return version.empty() ? Located{} : python_versions("==" + version + ".*", where);
    }

    const YamlFile& yaml_;
    const fs::path& file_;
    const LockChoice& choice_;
    MarkerFacts facts_;
    LockedLines lines_;
    std::map<std::string, Wanted> wanted_; ///< by name
    std::vector<std::string> notes_;
};

} // namespace

Result<ConvertedFile> read_pipfile_lock(const fs::path& file, const LockChoice& choice) {
    auto yaml = YamlFile::read(file, most_nodes_of_lock, true);
    if (!yaml) return fail(of_lock(std::move(yaml.error()), "Pipfile.lock"));
    if (!yaml->root().IsMap()) return refuse_incomplete(file, "Pipfile.lock", "_meta");
    // yaml-cpp throws on missing keys; turn that into errors.
    try {
        return PipfileLockReader(*yaml, file, choice).read();
    } catch (const YAML::Exception& problem) {
        return fail_input("this Pipfile.lock is incomplete or damaged", problem.msg, file.string(),
                          "Copy or create it again.");
    }
}

} // namespace containerize::spec

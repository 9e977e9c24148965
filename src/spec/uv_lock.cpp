// Reads uv.lock, version 1.
#include "core/interrupt.h"
#include "core/printable.h"
#include "core/text.h"
#include "core/url.h"
#include "spec/locked_lines.h"
#include "spec/package_name.h"
#include "util/toml_file.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace containerize::spec {

namespace {

namespace fs = std::filesystem;

/// Stops at hostile locks. To combine two markers takes about as many steps as the squares of their
/// alternatives. Real locks have a few for each package.
constexpr std::size_t most_steps = 50'000'000;

constexpr std::string_view export_advice =
    "Give the file that `uv export --no-emit-workspace --format requirements-txt -o requirements.txt` "
    "writes.";

std::size_t square(std::size_t number) {
    return number * number;
}

/// Where a package comes from: the only key of its `source`, and the value.
struct Source {
    std::string kind, place, subdirectory = {};
    bool operator==(const Source&) const = default;
};

struct UvPackage {
    const toml::table* entry = nullptr;
    std::string name, version;
    Source source;
};

/// A package, or what one of its extras adds.
using Part = std::pair<const UvPackage*, std::string>;

class UvLockReader {
public:
    UvLockReader(const TomlFile& toml, const LockChoice& choice)
        : toml_(toml), choice_(choice), facts_(facts_for(choice)), lines_(toml.file()) {}

    Result<ConvertedFile> read() {
        const auto& root = toml_.root();
        TRY(check_version(root));
        TRY(read_packages(root));
        const auto* project = TRY(project_of(root));
        TRY(follow(*project));
        for (const auto& package : packages_)
            if (const auto marker = TRY(needed(package)); &package != project && !marker.is_never())
                TRY(take(package, marker));
        auto converted = TRY(lines_.finish());
        converted.python = TRY(python_versions(toml_, root));
        if (project->source.kind != "virtual")
            converted.notes.push_back("The project '" + project->name +
                                      "' itself is not installed, only what it depends on.");
        return converted;
    }

private:
    Status check_version(const toml::table& root) const {
        const auto* node = root.get("version");
        if (node == nullptr)
            return fail_input("this uv lock file is incomplete", "it has no `version`", toml_.file().string(),
                              "Copy or create it again.");
        const auto* version = node->as_integer();
        if (version != nullptr && version->get() == 1) return {};
        return toml_.refuse(*node, "unknown version of the uv lock format", {}, "Version 1 is supported.");
    }

    Status read_packages(const toml::table& root) {
        for (const auto* entry : TRY(toml_.tables(root, "package"))) {
            UvPackage package{.entry = entry,
                              .name = TRY(toml_.text(*entry, "name")),
                              .version = TRY(toml_.text(*entry, "version")),
                              .source = TRY(source_of(*entry))};
            if (!is_package_name(package.name)) return toml_.refuse(*entry, "a package has no valid `name`");
            packages_.push_back(std::move(package));
        }
        for (const auto& package : packages_)
            by_name_[package.name].push_back(&package);
        return {};
    }

    [[nodiscard]] Result<Source> source_of(const toml::table& entry) const {
        const auto* source = TRY(toml_.table(entry, "source"));
        if (source == nullptr) return Source();
        for (const char* kind : {"registry", "git", "url", "path", "directory", "editable", "virtual"})
            if (source->contains(kind))
                return Source{.kind = kind,
                              .place = TRY(toml_.text(*source, kind)),
                              .subdirectory = TRY(toml_.text(*source, "subdirectory"))};
        return toml_.refuse(*source, "a package has a source of unknown kind", {},
                            std::string(export_advice));
    }

    /// The package in whose directory the lock is.
    [[nodiscard]] Result<const UvPackage*> project_of(const toml::table& root) const {
        for (const auto& package : packages_) {
            const auto& [kind, place, subdirectory] = package.source;
            if ((kind == "virtual" || kind == "editable" || kind == "directory") && place == ".")
                return &package;
        }
        const auto* manifest = TRY(toml_.table(root, "manifest"));
        const bool is_workspace = manifest != nullptr && manifest->contains("members");
        return fail_input("this uv lock file has no project at its root",
                          is_workspace ? "it is the lock of a workspace of several projects" : "",
                          toml_.file().string(), std::string(export_advice));
    }

    /// Finds out under which condition each package is needed.
    Status follow(const UvPackage& project) {
        TRY(choose_parts(project));
        require({&project, ""}, Marker());
        for (const auto& extra : choice_.extras)
            require({&project, normalised_name(extra)}, Marker());
        TRY(follow_groups(project));
        while (!open_.empty()) {
            if (interrupted()) return fail_interrupted();
            const auto part = open_.front();
            open_.pop_front();
            TRY(follow_part(part));
        }
        return {};
    }

    Status choose_parts(const UvPackage& project) {
        project_name_ = project.name;
        const auto extras = TRY(toml_.keys(*project.entry, "optional-dependencies"));
        TRY(check_parts(choice_.extras, extras, "--extra", toml_.file()));
        const auto groups = TRY(toml_.keys(*project.entry, "dev-dependencies"));
        TRY(check_parts(choice_.groups, groups, "--group", toml_.file()));
        // If extras or groups exclude each other, uv writes what is chosen like this.
        const auto encoded = [&](const char* kind, const std::string& name) {
            facts_.extras.insert(std::string(kind) + "-" + std::to_string(project.name.size()) + "-" +
                                 project.name + "-" + normalised_name(name));
        };
        facts_.extras.clear();
        for (const auto& extra : choice_.extras)
            encoded("extra", extra);
        for (const auto& group : choice_.groups)
            encoded("group", group);
        return {};
    }

    void require(const Part& part, const Marker& marker) {
        const auto [found, is_new] = needed_.emplace(part, Marker::never());
        auto both = found->second;
        both |= marker;
        if (both == found->second && !is_new) return;
        found->second = std::move(both);
        open_.push_back(part);
    }

    Status follow_groups(const UvPackage& project) {
        const auto* groups = TRY(toml_.table(*project.entry, "dev-dependencies"));
        if (groups == nullptr) return {};
        for (const auto& [name, list] : *groups)
            if (facts_.groups.contains(normalised_name(name.str())))
                TRY(follow_list(list, name.str(), Marker()));
        return {};
    }

    Status follow_part(const Part& part) {
        const auto& [package, extra] = part;
        const auto marker = needed_.at(part);
        if (extra.empty()) {
            const auto* list = package->entry->get("dependencies");
            return list == nullptr ? Status() : follow_list(*list, "dependencies", marker);
        }
        const auto* extras = TRY(toml_.table(*package->entry, "optional-dependencies"));
        if (extras == nullptr) return {}; // uv accepts extras that do not exist, with a warning
        for (const auto& [name, list] : *extras)
            if (normalised_name(name.str()) == extra) TRY(follow_list(list, name.str(), marker));
        return {};
    }

    Status follow_list(const toml::node& list, std::string_view name, const Marker& marker) {
        for (const auto* dependency : TRY(toml_.tables(list, name)))
            TRY(follow_dependency(*dependency, marker));
        return {};
    }

    Status follow_dependency(const toml::table& dependency, const Marker& marker) {
        TRY(check_conflicts(dependency));
        auto all = TRY(marker_of(toml_, dependency, facts_));
        steps_ += 1 + square(all.alternatives()) + square(marker.alternatives());
        if (steps_ > most_steps)
            return fail_input("the dependencies in this uv lock file are too complex", {},
                              toml_.file().string(), std::string(export_advice));
        all &= marker;
        if (all.is_too_complex())
            return toml_.refuse(dependency, "the markers in this uv lock file are too complex", {},
                                std::string(export_advice));
        if (all.is_never()) return {};
        const auto* package = TRY(package_of(dependency));
        require({package, ""}, all);
        for (const auto& extra : TRY(toml_.texts(dependency, "extra")))
            require({package, normalised_name(extra)}, all);
        return {};
    }

    /// If parts of other members exclude each other, or members as a whole, uv refers to them like this, and
    /// whether they are chosen depends on all other dependencies.
    [[nodiscard]] Status check_conflicts(const toml::table& dependency) const {
        const auto text = TRY(toml_.text(dependency, "marker"));
        const auto own = std::to_string(project_name_.size()) + "-" + project_name_ + "-";
        for (const std::string_view kind : {"'extra-", "'group-", "'project-"})
            for (auto at = text.find(kind); at != text.npos; at = text.find(kind, at + 1))
                if (kind == "'project-" || !std::string_view(text).substr(at + kind.size()).starts_with(own))
                    return toml_.refuse(
                        dependency, "this uv lock file has conflicts between members of a workspace",
                        "which packages they need is known only to uv", std::string(export_advice));
        return {};
    }

    [[nodiscard]] Result<const UvPackage*> package_of(const toml::table& dependency) const {
        const auto name = TRY(toml_.text(dependency, "name"));
        const auto version = TRY(toml_.text(dependency, "version"));
        const auto source = TRY(source_of(dependency));
        const UvPackage* only = nullptr;
        const auto found = by_name_.find(name);
        if (found != by_name_.end())
            for (const auto* package : found->second) {
                const bool fits = (version.empty() || version == package->version) &&
                                  (source.kind.empty() || source == package->source);
                if (fits && only != nullptr)
                    return toml_.refuse(dependency, "several packages fit the dependency '" + name + "'", {},
                                        "Lock again.");
                if (fits) only = package;
            }
        if (only != nullptr) return only;
        return toml_.refuse(dependency,
                            "the lock has no package for the dependency '" +
                                printable_line(name.substr(0, 100)) + "'",
                            {}, "Lock again. A part of the file is missing.");
    }

    [[nodiscard]] Result<Marker> needed(const UvPackage& package) const {
        const auto found = needed_.find({&package, ""});
        auto marker = found == needed_.end() ? Marker::never() : found->second;
        if (marker.is_too_complex())
            return toml_.refuse(*package.entry, "the markers of '" + package.name + "' are too complex", {},
                                std::string(export_advice));
        return marker;
    }

    Status take(const UvPackage& package, const Marker& marker) {
        const auto where = toml_.where(*package.entry);
        const auto& [kind, place, subdirectory] = package.source;
        if (kind == "registry") return take_of_index(package, marker);
        if (kind == "virtual") return {}; // has no code of its own
        LockedRequirement direct{.name = package.name, .version = package.version, .location = place};
        if (kind == "git") {
            direct.location = "git+" + place;
        } else if (!subdirectory.empty() && kind == "url") {
            return toml_.refuse(*package.entry,
                                "'" + package.name +
                                    "' is in a subdirectory of its archive, which is not "
                                    "supported",
                                {}, "Lock it from an archive of its own.");
        } else if (kind == "url" || kind == "path") {
            const auto checksums = TRY(checksums_of(package));
            direct.sha256 = only_sha256(checksums);
            if (direct.sha256.empty()) return refuse_unverifiable(package.name, where);
        } else if (kind.empty()) {
            return toml_.refuse(*package.entry, "the lock has no source for '" + package.name + "'");
        }
        return lines_.add(direct, marker, where);
    }

    [[nodiscard]] Result<std::vector<std::string>> checksums_of(const UvPackage& package) const {
        std::vector<std::string> checksums;
        auto files = TRY(toml_.tables(*package.entry, "wheels"));
        if (const auto* source = TRY(toml_.table(*package.entry, "sdist"))) files.push_back(source);
        for (const auto* file : files)
            if (auto hash = TRY(toml_.text(*file, "hash")); !hash.empty())
                checksums.push_back(std::move(hash));
        return checksums;
    }

    Status take_of_index(const UvPackage& package, const Marker& marker) {
        const auto where = toml_.where(*package.entry);
        PinnedPackage pinned{.name = package.name,
                             .version = package.version,
                             .checksums = TRY(checksums_of(package)),
                             .marker = marker,
                             .where = where};
        TRY(is_url(package.source.place) ? lines_.add_index(package.source.place, where)
                                         : lines_.add_directory(package.source.place, where));
        return lines_.add(pinned);
    }

    const TomlFile& toml_;
    const LockChoice& choice_;
    MarkerFacts facts_;
    LockedLines lines_;
    std::string project_name_;
    std::vector<UvPackage> packages_;
    std::map<std::string, std::vector<const UvPackage*>, std::less<>> by_name_;
    std::map<Part, Marker> needed_;
    std::deque<Part> open_; ///< parts whose marker has changed
    std::size_t steps_ = 0;
};

} // namespace

Result<ConvertedFile> read_uv_lock(const fs::path& file, const LockChoice& choice) {
    const auto toml = TRY(TomlFile::read(file));
    return UvLockReader(toml, choice).read();
}

} // namespace containerize::spec

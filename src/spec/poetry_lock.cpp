// Reads poetry.lock, version 2.1, which Poetry 2 writes.
#include "core/printable.h"
#include "core/text.h"
#include "core/url.h"
#include "spec/locked_lines.h"
#include "spec/package_name.h"
#include "util/toml_file.h"

#include <algorithm>
#include <set>
#include <utility>

namespace containerize::spec {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view main_group = "main";

class PoetryLockReader {
public:
    PoetryLockReader(const TomlFile& toml, const LockChoice& choice)
        : toml_(toml), choice_(choice), facts_(facts_for(choice)), lines_(toml.file()) {
        facts_.groups.emplace(main_group);
    }

    Result<ConvertedFile> read() {
        const auto& root = toml_.root();
        const auto* metadata = TRY(toml_.table(root, "metadata"));
        if (metadata == nullptr)
            return fail_input("this poetry lock file is incomplete", "it has no table [metadata]",
                              toml_.file().string(), "Copy or create it again.");
        TRY(check_version(*metadata));
        const auto packages = TRY(toml_.tables(root, "package"));
        TRY(choose_parts(packages));
        for (const auto* package : packages)
            TRY(take(*package));
        auto converted = lines_.finish();
        if (const auto* versions = metadata->get("python-versions")) {
            const auto text = TRY(toml_.text(*metadata, "python-versions"));
            converted.python = TRY(python_versions(without_carets(text), toml_.where(*versions)));
        }
        return converted;
    }

private:
    Status check_version(const toml::table& metadata) const {
        const auto version = TRY(toml_.text(metadata, "lock-version"));
        if (version == "2.1") return {};
        const auto* node = metadata.get("lock-version");
        const bool is_old = version.starts_with("1.") || version == "2.0";
        return toml_.refuse(node == nullptr ? metadata : *node,
                            "unsupported version of the poetry lock format: '" + printable_line(version) +
                                "'",
                            is_old ? "it does not say which packages belong to which group" : "",
                            is_old ? "Lock again with Poetry 2: `poetry lock`."
                                   : "Version 2.1 is supported, which Poetry 2 writes.");
    }

    Status choose_parts(const std::vector<const toml::table*>& packages) const {
        std::set<std::string> groups;
        for (const auto* package : packages)
            for (auto& group : TRY(toml_.texts(*package, "groups")))
                groups.insert(std::move(group));
        TRY(check_parts(choice_.groups, {groups.begin(), groups.end()}, "--group", toml_.file()));
        std::vector<std::string> extras;
        if (const auto* lists = TRY(toml_.table(toml_.root(), "extras")))
            for (const auto& [name, packages_of_extra] : *lists)
                extras.emplace_back(name.str());
        return check_parts(choice_.extras, extras, "--extra", toml_.file());
    }

    /// Poetry writes "^3.11" for ">=3.11,<4".
    static std::string without_carets(const std::string& versions) {
        const auto caret = versions.find('^');
        if (caret == versions.npos) return versions == "*" ? "" : versions;
        const auto major = versions.substr(caret + 1, versions.find_first_of(".,| ", caret) - caret - 1);
        const auto next = to_number<unsigned>(major);
        if (!next || versions.find('^', caret + 1) != versions.npos) return versions;
        const auto end = std::min(versions.find_first_of(",|", caret), versions.size());
        return versions.substr(0, caret) + ">=" + versions.substr(caret + 1, end - caret - 1) + ",<" +
               std::to_string(*next + 1) + versions.substr(end);
    }

    /// The condition under which the chosen groups need the package.
    [[nodiscard]] Result<Marker> needed(const toml::table& package) const {
        const auto* node = package.get("markers");
        const auto* of_groups = node == nullptr ? nullptr : node->as_table();
        const auto common = of_groups == nullptr ? TRY(toml_.text(package, "markers")) : std::string();
        Marker marker = Marker::never();
        for (const auto& group : TRY(toml_.texts(package, "groups"))) {
            if (!facts_.groups.contains(normalised_name(group))) continue;
            const auto text = of_groups == nullptr ? common : TRY(toml_.text(*of_groups, group));
            marker |= TRY(marker_at(text, facts_, toml_.where(package)));
        }
        if (marker.is_too_complex()) return toml_.refuse(package, "the markers of a package are too complex");
        return marker;
    }

    Status take(const toml::table& package) {
        const auto marker = TRY(needed(package));
        const auto where = toml_.where(package);
        PinnedPackage pinned{.name = TRY(toml_.text(package, "name")),
                             .version = TRY(toml_.text(package, "version")),
                             .checksums = {},
                             .marker = marker,
                             .where = where};
        for (const auto* file : TRY(toml_.tables(package, "files")))
            pinned.checksums.push_back(TRY(toml_.text(*file, "hash")));
        const auto* source = TRY(toml_.table(package, "source"));
        if (source == nullptr) return lines_.add(pinned);
        const auto type = TRY(toml_.text(*source, "type"));
        const auto url = TRY(toml_.text(*source, "url"));
        if (type == "legacy") {
            if (!marker.is_never()) TRY(lines_.add_index(url, where));
            return lines_.add(pinned);
        }
        LockedRequirement direct{.name = pinned.name, .version = pinned.version, .location = url};
        if (type == "git") {
            const auto directory = TRY(toml_.text(*source, "subdirectory"));
            direct.location = "git+" + url + "?rev=" + TRY(toml_.text(*source, "resolved_reference")) +
                              (directory.empty() ? "" : "&subdirectory=" + url_encoded(directory));
        } else if (type == "url" || type == "file") {
            direct.sha256 = only_sha256(pinned.checksums);
            if (direct.sha256.empty() && !marker.is_never())
                return refuse_unverifiable(printable_line(pinned.name), where);
        } else if (type != "directory") {
            return toml_.refuse(*source,
                                "a package has a source of unknown kind: '" + printable_line(type) + "'", {},
                                "`poetry export` converts the lock to a requirements file.");
        }
        return lines_.add(direct, marker, where);
    }

    const TomlFile& toml_;
    const LockChoice& choice_;
    MarkerFacts facts_;
    LockedLines lines_;
};

} // namespace

Result<ConvertedFile> read_poetry_lock(const fs::path& file, const LockChoice& choice) {
    const auto toml = TRY(TomlFile::read(file));
    return PoetryLockReader(toml, choice).read();
}

} // namespace containerize::spec

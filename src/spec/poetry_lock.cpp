// Reads poetry.lock, version 2.1, which Poetry 2 writes.
#include "core/printable.h"
#include "core/text.h"
#include "spec/locked_lines.h"
#include "spec/package_name.h"
#include "util/toml_file.h"

#include <limits>
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
        auto converted = TRY(lines_.finish());
        if (const auto* versions = metadata->get("python-versions")) {
            const auto text = TRY(toml_.text(*metadata, "python-versions"));
            converted.python = TRY(python_versions(in_form_of_pip(text), toml_.where(*versions)));
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
        const auto extras = TRY(toml_.keys(toml_.root(), "extras"));
        return check_parts(choice_.extras, extras, "--extra", toml_.file());
    }

    /// Poetry's conditions in the form of Python's own tools: ">=3.11,<4" for "^3.11", ">=3.11,<3.12" for
    /// "~3.11", and commas instead of blanks.
    static std::string in_form_of_pip(std::string_view versions) {
        std::string result;
        std::string condition;
        const auto finish = [&] {
            if (!condition.empty() && !result.empty() && !result.ends_with('|')) result += ',';
            result += without_caret(condition);
            condition.clear();
        };
        for (const char c : versions) {
            const bool is_blank = c == ' ';
            // A blank may stand between a comparison and its version.
            if (is_blank && condition.find_last_not_of("<>=!~^") == condition.npos) continue;
            if (is_blank || c == ',' || c == '|') finish();
            if (c == '|' && !result.ends_with('|')) result += c;
            if (!is_blank && c != ',' && c != '|') condition += c;
        }
        finish();
        return result == "*" ? "" : result;
    }

    static std::string without_caret(const std::string& condition) {
        const bool is_tilde = condition.starts_with('~') && !condition.starts_with("~=");
        if (!is_tilde && !condition.starts_with('^')) return condition;
        const auto version = condition.substr(1);
        const auto parts = split(version, '.');
        // The part that may not increase, and so those before it.
        const std::size_t last = is_tilde && parts.size() > 1 ? 1 : 0;
        const auto number = to_number<unsigned>(parts[last]);
        if (!number || *number == std::numeric_limits<unsigned>::max()) return condition;
        return ">=" + version + ",<" + (last == 1 ? std::string(parts[0]) + "." : "") +
               std::to_string(*number + 1);
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
            if (marker.is_never()) return {};
            const auto directory = TRY(toml_.text(*source, "subdirectory"));
            const auto commit = TRY(toml_.text(*source, "resolved_reference"));
            direct.location = git_location(url, commit, directory);
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

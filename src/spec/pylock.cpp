// Reads pylock.toml (PEP 751), version 1.
#include "core/printable.h"
#include "core/text.h"
#include "core/url.h"
#include "spec/locked_lines.h"
#include "spec/package_name.h"
#include "util/toml_file.h"

#include <algorithm>
#include <utility>

namespace containerize::spec {

namespace {

namespace fs = std::filesystem;

class PylockReader {
public:
    PylockReader(const TomlFile& toml, const LockChoice& choice)
        : toml_(toml), choice_(choice), facts_(facts_for(choice)), lines_(toml.file()) {}

    Result<ConvertedFile> read() {
        const auto& root = toml_.root();
        TRY(check_version(root));
        TRY(choose_parts(root));
        TRY(check_environments(root));
        for (const auto* package : TRY(toml_.tables(root, "packages")))
            TRY(take(*package));
        auto converted = TRY(lines_.finish());
        converted.python = TRY(python_versions(toml_, root));
        return converted;
    }

private:
    Status check_version(const toml::table& root) const {
        const auto* node = root.get("lock-version");
        if (node == nullptr)
            return fail_input("this pylock file is incomplete", "it has no `lock-version`",
                              toml_.file().string(), "Copy or create it again.");
        const auto version = TRY(toml_.text(root, "lock-version"));
        if (version == "1" || version.starts_with("1.")) return {};
        return toml_.refuse(*node, "unknown version of the pylock format: '" + printable_line(version) + "'",
                            {}, "Version 1 is supported.");
    }

    Status choose_parts(const toml::table& root) {
        const auto extras = TRY(toml_.texts(root, "extras"));
        TRY(check_parts(choice_.extras, extras, "--extra", toml_.file()));
        auto groups = TRY(toml_.texts(root, "dependency-groups"));
        const auto by_default = TRY(toml_.texts(root, "default-groups"));
        groups.insert(groups.end(), by_default.begin(), by_default.end());
        TRY(check_parts(choice_.groups, groups, "--group", toml_.file()));
        auto chosen = choice_;
        chosen.groups.insert(chosen.groups.end(), by_default.begin(), by_default.end());
        facts_ = facts_for(chosen);
        return {};
    }

    /// The file may be for other platforms only.
    Status check_environments(const toml::table& root) const {
        const auto environments = TRY(toml_.texts(root, "environments"));
        if (environments.empty()) return {};
        Marker any = Marker::never();
        for (const auto& one : environments)
            any |= TRY(marker_at(one, facts_, toml_.where(*root.get("environments"))));
        if (!any.is_never()) return {};
        return toml_.refuse(*root.get("environments"), "this pylock file is not for " + choice_.subdir,
                            "its `environments` exclude it", "Lock again for that platform.");
    }

    Status take(const toml::table& package) {
        const auto where = toml_.where(package);
        const auto name = TRY(toml_.text(package, "name"));
        if (name.empty()) return toml_.refuse(package, "a package has no `name`");
        const auto marker = TRY(marker_of(toml_, package, facts_));
        if (marker.is_never()) return {};
        for (const auto& [kind, read] :
             {std::pair("vcs", &PylockReader::repository), std::pair("directory", &PylockReader::directory),
              std::pair("archive", &PylockReader::archive)})
            if (const auto* source = TRY(toml_.table(package, kind))) {
                auto direct = TRY((this->*read)(*source, name));
                direct.name = name;
                return lines_.add(direct, marker, where);
            }
        return take_of_index(package, name, marker);
    }

    Status take_of_index(const toml::table& package, const std::string& name, const Marker& marker) {
        const auto where = toml_.where(package);
        auto files = TRY(toml_.tables(package, "wheels"));
        if (const auto* source = TRY(toml_.table(package, "sdist"))) files.push_back(source);
        if (files.empty())
            return toml_.refuse(package, "the lock has no file for '" + printable_line(name) + "'",
                                "it needs `wheels`, `sdist`, `archive`, `directory` or `vcs`");
        const auto index = TRY(toml_.text(package, "index"));
        const auto version = TRY(toml_.text(package, "version"));
        // Which one of several files fits is known to pip and uv, which ask an index for them.
        if (files.size() == 1 && index.empty() && !TRY(toml_.text(*files.front(), "url")).empty()) {
            auto direct = TRY(archive(*files.front(), name));
            direct.name = name;
            return lines_.add(direct, marker, where);
        }
        PinnedPackage pinned{
            .name = name, .version = version, .checksums = {}, .marker = marker, .where = where};
        for (const auto* file : files) {
            for (auto& checksum : TRY(checksums_of(*file)))
                pinned.checksums.push_back(std::move(checksum));
            if (const auto path = TRY(toml_.text(*file, "path")); !path.empty())
                TRY(lines_.add_directory(fs::path(path).parent_path().string(), toml_.where(*file)));
        }
        TRY(lines_.add_index(index, where));
        return lines_.add(pinned);
    }

    /// "sha256:..." for each entry of `hashes`; only that one if it is there, since it suffices.
    [[nodiscard]] Result<std::vector<std::string>> checksums_of(const toml::table& file) const {
        std::vector<std::string> checksums;
        const auto* hashes = TRY(toml_.table(file, "hashes"));
        if (hashes == nullptr) return checksums;
        for (const auto& [kind, value] : *hashes) {
            const auto digits = TRY(toml_.text(*hashes, kind.str()));
            checksums.push_back(lower(kind.str()) + ":" + lower(digits));
            if (is_strong_checksum(checksums.back()) && checksums.back().starts_with("sha256:"))
                return std::vector{checksums.back()};
        }
        return checksums;
    }

    /// The value of `url`, or else of `path`.
    [[nodiscard]] Result<std::string> location_of(const toml::table& source, const std::string& name) const {
        auto url = TRY(toml_.text(source, "url"));
        if (!url.empty() && !is_url(url))
            return toml_.refuse(source, "the URL of '" + printable_line(name) + "' is none");
        if (!url.empty()) return url;
        auto path = TRY(toml_.text(source, "path"));
        if (is_url(path))
            return toml_.refuse(source, "the path of '" + printable_line(name) + "' is a URL", {},
                                "Write it as `url`.");
        if (path.empty())
            return toml_.refuse(source,
                                "the lock has neither a URL nor a path for '" + printable_line(name) + "'");
        return path;
    }

    [[nodiscard]] Result<LockedRequirement> repository(const toml::table& source,
                                                       const std::string& name) const {
        if (const auto type = TRY(toml_.text(source, "type")); type != "git")
            return toml_.refuse(source, "unsupported kind of repository: '" + printable_line(type) + "'", {},
                                "Lock the package from git or from an index.");
        auto location = TRY(location_of(source, name));
        if (!is_url(location))
            location =
                file_url(fs::absolute(toml_.file().parent_path() / location).lexically_normal().string());
        const auto directory = TRY(toml_.text(source, "subdirectory"));
        const auto commit = TRY(toml_.text(source, "commit-id"));
        return LockedRequirement{.location = git_location(location, commit, directory)};
    }

    [[nodiscard]] Result<LockedRequirement> directory(const toml::table& source,
                                                      const std::string& name) const {
        if (source.contains("subdirectory"))
            return toml_.refuse(source,
                                "'" + printable_line(name) +
                                    "' is in a subdirectory of its directory, which is not supported",
                                {}, "Lock it with the path of the subdirectory.");
        return LockedRequirement{.location = TRY(location_of(source, name))};
    }

    [[nodiscard]] Result<LockedRequirement> archive(const toml::table& source,
                                                    const std::string& name) const {
        LockedRequirement direct{.location = TRY(location_of(source, name))};
        if (source.contains("subdirectory"))
            return toml_.refuse(source,
                                "'" + printable_line(name) +
                                    "' is in a subdirectory of its archive, which is not supported",
                                {}, "Lock it from an archive of its own.");
        std::vector<std::string> checksums = TRY(checksums_of(source));
        std::erase_if(checksums, [](const std::string& one) { return !one.starts_with("sha256:"); });
        direct.sha256 = only_sha256(checksums);
        // Also of a file on this machine, since the lock is to have it.
        if (direct.sha256.empty()) return refuse_unverifiable(printable_line(name), toml_.where(source));
        return direct;
    }

    const TomlFile& toml_;
    const LockChoice& choice_;
    MarkerFacts facts_;
    LockedLines lines_;
};

} // namespace

Result<ConvertedFile> read_pylock(const fs::path& file, const LockChoice& choice) {
    const auto toml = TRY(TomlFile::read(file));
    return PylockReader(toml, choice).read();
}

} // namespace containerize::spec

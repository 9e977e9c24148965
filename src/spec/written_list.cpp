#include "spec/written_list.h"

#include "conda/match_spec.h"
#include "core/text.h"
#include "core/url.h"
#include "spec/package_name.h"
#include "util/digest.h"
#include "util/json.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::spec {

namespace {

using conda::PackageRecord;

/// A line with a key, or nothing if there is no value. All values are quoted: without quotes, 1.10 is a
/// number and `no` is false.
std::string line(std::string_view start, const std::string& value) {
    return value.empty() ? "" : fmt::format("{}: {}\n", start, quoted(value));
}

std::string number_line(std::string_view start, std::uint64_t value) {
    return value == 0 ? "" : fmt::format("{}: {}\n", start, value);
}

std::string list(const std::string& indent, std::string_view key, const std::vector<std::string>& values) {
    if (values.empty()) return {};
    std::string text = fmt::format("{}{}:\n", indent, key);
    for (const auto& value : values)
        text += fmt::format("{}- {}\n", indent, quoted(value));
    return text;
}

std::string channel_of(const PackageRecord& record) {
    if (!record.channel.empty()) return record.channel;
    const auto directory = record.url.substr(0, record.url.rfind('/'));
    return directory.substr(0, directory.rfind('/')); // without the subdir
}

/// Those of the environment, then others from which packages come.
std::vector<std::string> channels_of(const LockedEnvironment& environment) {
    auto channels = environment.channels;
    for (const auto& record : environment.packages)
        if (auto channel = channel_of(record); std::ranges::find(channels, channel) == channels.end())
            channels.push_back(std::move(channel));
    return channels;
}

/// The names of packages with their conditions, which conda-lock keeps as a mapping.
std::map<std::string, std::string> conditions_of(const PackageRecord& record) {
    std::map<std::string, std::string> conditions;
    for (const auto& dependency : record.depends) {
        const auto end = std::min(dependency.find(' '), dependency.size());
        const std::string rest(trimmed(std::string_view(dependency).substr(end)));
        auto& condition = conditions[dependency.substr(0, end)];
        condition += condition.empty() || rest.empty() ? rest : "," + rest;
    }
    return conditions;
}

/// Where pip finds the package without an index; empty if nothing tells.
std::string location_of(const PipSource& source) {
    if (source.url.empty() || !is_lasting(source.url)) return {};
    if (source.kind != PipSource::Kind::repository) return source.url;
    return source.vcs + "+" + source.url + "@" + source.commit +
           (source.subdirectory.empty() ? "" : "#subdirectory=" + source.subdirectory);
}

/// Sorts out what a format cannot contain.
class Writer {
public:
    Writer(const LockedEnvironment& environment, std::string subdir)
        : environment_(environment), subdir_(std::move(subdir)) {}

    WrittenList conda_explicit() {
        leave_out_variables("an explicit list");
        for (const auto& one : of_pip())
            leave_out(one, "an explicit list contains only conda packages");
        std::string text =
            "# Install these packages with `conda create --file FILE`.\n# platform: " + subdir_ +
            "\n@EXPLICIT\n";
        for (const auto& record : environment_.packages) {
            const auto checksum = record.sha256.empty() ? record.md5 : "sha256:" + record.sha256;
            text += url_encoded(record.url) + (checksum.empty() ? "" : "#" + checksum) + "\n";
        }
        return {.text = std::move(text), .notes = std::move(notes_)};
    }

    WrittenList conda_lock() {
        leave_out_variables("a conda-lock file");
        std::string packages;
        for (const auto& record : environment_.packages)
            packages += in_conda_lock(record);
        for (const auto& one : of_pip())
            packages += in_conda_lock(one);
        std::string text = "version: 1\nmetadata:\n  content_hash:\n";
        text += "    " + subdir_ + ": " + quoted(sha256(packages)) + "\n  channels:\n";
        for (const auto& channel : channels_of(environment_))
            text += "  - url: " + quoted(channel) + "\n    used_env_vars: []\n";
        text += "  platforms:\n  - " + subdir_ + "\n  sources: []\npackage:\n" + packages;
        return {.text = std::move(text), .notes = std::move(notes_)};
    }

    WrittenList pixi_lock() {
        leave_out_variables("a pixi lock file");
        std::string rows, packages;
        for (const auto& record : environment_.packages) {
            rows += line("      - conda", record.url);
            packages += in_pixi_lock(record);
        }
        for (const auto& one : of_pip()) {
            const auto location = location_for_lock(one);
            if (location.empty()) continue;
            rows += line("      - pypi", location);
            packages += in_pixi_lock(one, location);
        }
        std::string text = "version: 6\nenvironments:\n  default:\n    channels:\n";
        for (const auto& channel : channels_of(environment_))
            text += "    - url: " + quoted(channel + "/") + "\n";
        text += "    packages:\n      " + subdir_ + ":\n" + rows + "packages:\n" + packages;
        return {.text = std::move(text), .notes = std::move(notes_)};
    }

    WrittenList environment_yaml() {
        std::string text = "channels:\n";
        for (const auto& channel : channels_of(environment_))
            text += "  - " + quoted(channel) + "\n";
        text += "  - nodefaults\ndependencies:\n";
        for (const auto& record : environment_.packages)
            text += "  - " + quoted(record.name + "=" + record.version + "=" + record.build) + "\n";
        if (!environment_.pip.empty()) text += "  - pip:\n";
        // pip wants checksums for all packages or for none, and repositories have none.
        for (const auto& requirement : environment_.pip)
            text += "    - " + quoted(requirement.text.substr(0, requirement.text.find(" --hash="))) + "\n";
        if (!environment_.variables.empty()) text += "variables:\n";
        for (const auto& [name, value] : environment_.variables)
            text += "  " + quoted(name) + ": " + quoted(value) + "\n";
        return {.text = std::move(text), .notes = {}};
    }

private:
    [[nodiscard]] std::vector<LockedPackage> of_pip() const {
        return environment_.of_pip.value_or(std::vector<LockedPackage>());
    }

    void leave_out(const LockedPackage& package, const std::string& why) {
        notes_.push_back(package.name + " " + package.version + " is left out: " + why);
    }

    void leave_out_variables(const std::string& format) {
        for (const auto& variable : environment_.variables)
            notes_.push_back("the variable " + variable.first + " is left out: " + format +
                             " contains only packages");
    }

    /// Empty if the package must be left out.
    std::string location_for_lock(const LockedPackage& package) {
        auto location = location_of(package.source);
        if (location.empty()) leave_out(package, "its address is not known, or contains a secret");
        return location;
    }

    [[nodiscard]] std::string in_conda_lock(const PackageRecord& record) const {
        std::string text = head_in_conda_lock(record.name, record.version, "conda");
        const auto conditions = conditions_of(record);
        text += conditions.empty() ? "  dependencies: {}\n" : "  dependencies:\n";
        for (const auto& [name, condition] : conditions)
            text += "    " + quoted(name) + ": " + quoted(condition) + "\n";
        return text + line("  url", record.url) + "  hash:\n" + line("    md5", record.md5) +
               line("    sha256", record.sha256) + line("  build", record.build) +
               "  category: main\n  optional: false\n";
    }

    std::string in_conda_lock(const LockedPackage& package) {
        if (package.source.kind == PipSource::Kind::directory) {
            leave_out(package, "a conda-lock file cannot name a directory");
            return {};
        }
        const auto location = location_for_lock(package);
        if (location.empty()) return {};
        const auto& checksum = package.source.sha256;
        return head_in_conda_lock(normalised_name(package.name), package.version, "pip") +
               "  dependencies: {}\n" + line("  url", location) +
               (checksum.empty() ? "  hash: {}\n" : "  hash:\n" + line("    sha256", checksum)) +
               "  category: main\n  optional: false\n";
    }

    [[nodiscard]] std::string head_in_conda_lock(const std::string& name, const std::string& version,
                                                 const std::string& manager) const {
        return line("- name", name) + line("  version", version) + "  manager: " + manager +
               "\n  platform: " + subdir_ + "\n";
    }

    static std::string in_pixi_lock(const PackageRecord& record) {
        const std::string noarch = record.noarch == conda::Noarch::no       ? ""
                                   : record.noarch == conda::Noarch::python ? "python"
                                                                            : "generic";
        return line("- conda", record.url) + line("  name", record.name) + line("  version", record.version) +
               line("  build", record.build) + fmt::format("  build_number: {}\n", record.build_number) +
               line("  subdir", record.subdir) + line("  noarch", noarch) + line("  sha256", record.sha256) +
               line("  md5", record.md5) + list("  ", "depends", record.depends) +
               list("  ", "constrains", record.constrains) + line("  license", record.license) +
               number_line("  size", record.size) + number_line("  timestamp", record.timestamp);
    }

    static std::string in_pixi_lock(const LockedPackage& package, const std::string& location) {
        return line("- pypi", location) + line("  name", normalised_name(package.name)) +
               line("  version", package.version) + line("  sha256", package.source.sha256) +
               (package.source.editable ? "  editable: true\n" : "");
    }

    const LockedEnvironment& environment_;
    std::string subdir_;
    std::vector<std::string> notes_;
};

} // namespace

WrittenList written_list(const LockedEnvironment& environment, const std::string& subdir, SpecKind format) {
    Writer writer(environment, subdir);
    if (format == SpecKind::conda_explicit) return writer.conda_explicit();
    if (format == SpecKind::conda_lock) return writer.conda_lock();
    if (format == SpecKind::pixi_lock) return writer.pixi_lock();
    return writer.environment_yaml();
}

} // namespace containerize::spec

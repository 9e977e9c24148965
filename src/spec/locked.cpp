// Reads lists of exact packages, which are not solved: explicit lists and our own lock files.
#include "core/filesystem.h"
#include "core/text.h"
#include "spec/conda_environment.h"
#include "spec/locked_package.h"
#include "util/json.h"
#include "util/redact.h"
#include "util/text_limits.h"
#include "util/user_text.h"
#include "util/yaml_file.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

namespace containerize::spec {

namespace {

using nlohmann::json;

constexpr int lock_format = 1;

Result<std::string> text_of(const fs::path& file) {
    auto content = TRY(read_input_file(file, largest_text));
    return decode(content, file);
}

std::string where_of(const fs::path& file, std::size_t line) {
    return file.string() + ":" + std::to_string(line);
}

/// Calls `visit` for each line of a list of packages that is not empty, trimmed and with its number.
Status each_line(const fs::path& file, const std::function<Status(std::string_view, std::size_t)>& visit) {
    const auto text = TRY(text_of(file));
    std::size_t number = 0;
    std::size_t packages = 0;
    for (const auto whole : split_lines(text)) {
        ++number;
        const auto line = trimmed(whole);
        if (line.empty()) continue;
        if (line.size() > longest_line) return too_large(where_of(file, number), "1 MiB for a line");
        if (line.find_first_of("#@") != 0 && ++packages > most_packages)
            return too_large(where_of(file, number), "50,000 packages");
        TRY(visit(line, number));
    }
    return {};
}

bool is_for(const conda::PackageRecord& record, const std::string& subdir) {
    return record.subdir.empty() || record.subdir == subdir || record.subdir == "noarch";
}

/// The keys of a source with their values.
auto texts_of_source(auto& source) {
    return std::to_array({std::pair("file", &source.file), std::pair("url", &source.url),
                          std::pair("sha256", &source.sha256), std::pair("vcs", &source.vcs),
                          std::pair("commit", &source.commit),
                          std::pair("subdirectory", &source.subdirectory)});
}

constexpr auto kinds_of_source = std::to_array<std::pair<PipSource::Kind, const char*>>({
    {PipSource::Kind::index, "index"},
    {PipSource::Kind::archive, "archive"},
    {PipSource::Kind::repository, "repository"},
    {PipSource::Kind::directory, "directory"},
});

json source_to_json(const PipSource& source) {
    const auto kind =
        std::ranges::find(kinds_of_source, source.kind, [](const auto& one) { return one.first; });
    json entry = {{"kind", kind->second}};
    for (const auto& [key, value] : texts_of_source(source))
        if (!value->empty()) entry[key] = *value;
    if (source.size != 0) entry["size"] = source.size;
    if (source.editable) entry["editable"] = true;
    return entry;
}

PipSource source_from_json(const json& entry) {
    PipSource source;
    const auto name = entry.at("kind").get<std::string>();
    for (const auto& [kind, word] : kinds_of_source)
        if (name == word) source.kind = kind;
    for (const auto& [key, value] : texts_of_source(source))
        *value = entry.value(key, "");
    source.size = entry.value("size", std::uint64_t{0});
    source.editable = entry.value("editable", false);
    return source;
}

void read_part_of_pip(const json& root, const fs::path& file, LockedEnvironment& locked) {
    for (const auto& one : root.at("pip"))
        locked.pip.push_back({.text = one.get<std::string>(), .where = file.string()});
    // Older locks do not have this key.
    if (!root.contains("pip_packages") && !locked.pip.empty()) return;
    locked.of_pip.emplace();
    for (const auto& one : root.value("pip_packages", json::array()))
        locked.of_pip->push_back(
            {.name = one.at("name").get<std::string>(),
             .version = one.at("version").get<std::string>(),
             .commit = one.value("commit", ""),
             .directory = one.value("directory", false),
             .source = one.contains("source") ? source_from_json(one.at("source")) : PipSource()});
}

std::vector<std::string> one_or_several(const json& value) {
    if (value.is_string()) return {value.get<std::string>()};
    return value.get<std::vector<std::string>>();
}

/// Recursion is safe because parse_json() limits the depth.
bool has_nul(const json& value) {
    if (value.is_string()) return value.get_ref<const std::string&>().find('\0') != std::string::npos;
    if (!value.is_structured()) return false;
    return std::ranges::any_of(value.items(), [](const auto& item) {
        return item.key().find('\0') != std::string::npos || has_nul(item.value());
    });
}

/// Whether it is a time that an image can store: seconds since 1970, in 32 bits.
bool is_time_of_image(const json& value) {
    return value.is_number_unsigned() &&
           value.get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max();
}

// yaml-cpp throws on missing keys; turn that into errors.
Result<LockedEnvironment> read_whole(const fs::path& file, LockReader read, const LockChoice& choice) {
    try {
        return read(file, choice);
    } catch (const YAML::Exception& problem) {
        const auto line = static_cast<std::size_t>(problem.mark.line) + 1;
        return fail_input("the lock file is incomplete or damaged", problem.msg,
                          problem.mark.is_null() ? file.string() : where_of(file, line),
                          "Copy or create it again.");
    }
}

/// Each package needs a record of its own name in conda-meta.
Status check_names(const std::vector<conda::PackageRecord>& packages, const fs::path& file) {
    std::map<std::string_view, const conda::PackageRecord*> by_name;
    for (const auto& one : packages) {
        const auto [earlier, is_new] = by_name.emplace(one.name, &one);
        if (is_new) continue;
        const auto first = earlier->second->distribution();
        return fail_input(one.name + " is listed twice",
                          one.distribution() == first ? "" : "as " + first + " and as " + one.distribution(),
                          file.string(), "Remove one of them.");
    }
    return {};
}

// Sorts dependencies before their dependents, otherwise keeps the order.
void sort_by_dependency(std::vector<conda::PackageRecord>& packages) {
    std::map<std::string, std::size_t> by_name;
    for (std::size_t i = 0; i < packages.size(); ++i)
        by_name.emplace(packages[i].name, i);
    std::vector<conda::PackageRecord> sorted;
    std::vector<char> seen(packages.size(), 0);
    struct Visit {
        std::size_t package, next; ///< index of the next dependency to visit
    };
    std::vector<Visit> path; // a stack instead of recursion: chains in a lock may be of any length
    const auto enter = [&](std::size_t package) {
        if (std::exchange(seen[package], 1) == 0) path.push_back({.package = package, .next = 0});
    };
    for (std::size_t i = 0; i < packages.size(); ++i) {
        enter(i);
        while (!path.empty()) {
            auto& [package, next] = path.back();
            if (next == packages[package].depends.size()) {
                sorted.push_back(std::move(packages[package]));
                path.pop_back();
                continue;
            }
            const auto& dependency = packages[package].depends[next++];
            const auto name = dependency.substr(0, dependency.find_first_of(" =<>!~["));
            if (const auto found = by_name.find(name); found != by_name.end()) enter(found->second);
        }
    }
    packages = std::move(sorted);
}

} // namespace

bool is_lasting(std::string_view url) {
    return url.find('?') == url.npos && url.find(redaction_mark) == url.npos && url.find("${") == url.npos;
}

Result<LockedEnvironment> read_explicit(const fs::path& file, const LockChoice& choice) {
    const auto& subdir = choice.subdir;
    LockedEnvironment locked;
    locked.of_pip.emplace();
    std::size_t unverified = 0;
    const auto take = [&](std::string_view line, std::size_t number) -> Status {
        constexpr std::string_view platform = "# platform:";
        if (line.starts_with(platform) && trimmed(line.substr(platform.size())) != subdir)
            return fail_input("this list is for " + std::string(trimmed(line.substr(platform.size()))) +
                                  ", not for " + subdir,
                              {}, where_of(file, number), "Create a list for that platform.");
        if (line.starts_with('#') || line == "@EXPLICIT") return {};
        auto record = TRY(record_of_url(std::string(line), file, where_of(file, number)));
        if (!is_for(record, subdir))
            return fail_input("this package is for " + record.subdir + ", not for " + subdir, {},
                              where_of(file, number), "Create a list for that platform.");
        unverified += record.md5.empty() && record.sha256.empty() ? 1 : 0;
        add_conda_package(std::move(record), {}, locked);
        return {};
    };
    TRY(each_line(file, take));
    if (locked.packages.empty()) return fail_input("this list contains no package", {}, file.string());
    if (unverified > 0)
        locked.notes.push_back(std::to_string(unverified) + " packages of " + file.string() +
                               " have no checksum, so their downloads cannot be verified.");
    return locked;
}

Result<LockedEnvironment> read_own_lock(const fs::path& file, const LockChoice& choice) {
    const auto& subdir = choice.subdir;
    auto text = TRY(text_of(file));
    // JSON is YAML.
    if (most_yaml_nodes(text) > most_nodes_of_lock) return too_large(file.string(), "1,000,000 entries");
    // The json library throws on wrong types and missing keys; turn that into errors.
    try {
        const json root = parse_json(text);
        if (!root.contains("containerize-lock"))
            return fail_input("this is not a containerize lock file", "it has no 'containerize-lock'",
                              file.string(), "Give the file share/containerize.lock of an installation.");
        if (has_nul(root))
            return fail_input("a string in this lock file contains a NUL character",
                              "it cannot be passed to a program", file.string(), "Remove \\u0000 from it.");
        if (const int format = to_integer<int>(root.at("containerize-lock")); format != lock_format)
            return fail_input("this lock file has format " + std::to_string(format) +
                                  ", and this version reads format " + std::to_string(lock_format),
                              {}, file.string(), "Use the version of containerize that created it.");
        if (const auto platform = root.at("subdir").get<std::string>(); platform != subdir)
            return fail_input("this lock file is for " + platform + ", not for " + subdir, {}, file.string());
        LockedEnvironment locked;
        for (const auto& one : root.at("conda")) {
            auto record = conda::parse_record(one);
            if (!record) return fail_input(record.error().what, record.error().why, file.string());
            record->file_name = one.at("fn").get<std::string>();
            set_address(*record, one.at("url").get<std::string>(), one.value("channel", ""));
            if (record->sha256.empty() && record->md5.empty())
                return fail_input("a package in this lock file has no checksum", record->name, file.string());
            add_conda_package(std::move(*record), {}, locked);
        }
        read_part_of_pip(root, file, locked);
        for (const auto& [name, specs] : root.at("requested").items())
            locked.requested.emplace(name, one_or_several(specs));
        locked.pip_requested = root.at("pip_requested").get<std::vector<std::string>>();
        locked.channels = root.at("channels").get<std::vector<std::string>>();
        locked.exclude_newer = root.value("exclude_newer", "");
        for (const auto& [name, value] : root.at("variables").items())
            locked.variables.emplace_back(name, value.get<std::string>());
        if (const auto time = root.find("source_date_epoch"); time != root.end()) {
            if (!is_time_of_image(*time))
                return fail_input("invalid `source_date_epoch` in this lock file", time->dump(),
                                  file.string(), "Write it in seconds since 1970, less than 4294967296.");
            locked.source_date_epoch = time->get<std::uint32_t>();
        }
        return locked;
    } catch (const json::exception& problem) {
        return fail_input("the lock file is incomplete or damaged", reason(problem, text), file.string(),
                          "Copy or create it again.");
    }
}

Status check_choice(const Format& format, const fs::path& file, const LockChoice& choice) {
    const auto has = [](const Format& one, std::string_view option) {
        return std::ranges::find(one.part_options, option) != one.part_options.end();
    };
    for (const auto& [option, is_given] :
         {std::pair("--environment", !choice.environment.empty()),
          std::pair("--category", !choice.categories.empty()), std::pair("--group", !choice.groups.empty()),
          std::pair("--extra", !choice.extras.empty())}) {
        if (!is_given || has(format, option)) continue;
        std::vector<std::string> others;
        for (const auto& other : formats())
            if (has(other, option)) others.emplace_back(other.description);
        return fail_input(std::string(option) + " selects a part of " + listed(others),
                          "this is " + describe(format.kind), file.string(), "Leave it out.");
    }
    return {};
}

Result<LockedEnvironment> read_locked(const fs::path& file, SpecKind kind, const LockChoice& choice) {
    const auto& format = format_of(kind);
    TRY(check_choice(format, file, choice));
    auto locked = TRY(read_whole(file, std::get<LockReader>(format.reader), choice));
    TRY(check_names(locked.packages, file));
    if (!format.sorted) sort_by_dependency(locked.packages);
    return locked;
}

std::string lock_text(const LockedEnvironment& locked, const std::string& subdir) {
    json packages = json::array();
    for (const auto& record : locked.packages)
        packages.push_back(conda::to_json(record));
    json pip = json::array();
    for (const auto& line : locked.pip)
        pip.push_back(line.text);
    json variables = json::object();
    for (const auto& [name, value] : locked.variables)
        variables[name] = value;
    json root = {
        {"containerize-lock", lock_format}, {"subdir", subdir},      {"channels", locked.channels},
        {"conda", std::move(packages)},     {"pip", std::move(pip)}, {"variables", std::move(variables)}};
    auto& requested = root["requested"] = json::object();
    for (const auto& [name, specs] : locked.requested)
        requested[name] = specs.size() == 1 ? json(specs.front()) : json(specs);
    auto& of_pip = root["pip_packages"] = json::array();
    for (const auto& package : locked.of_pip.value_or(std::vector<LockedPackage>())) {
        of_pip.push_back({{"name", package.name}, {"version", package.version}});
        if (!package.commit.empty()) of_pip.back()["commit"] = package.commit;
        if (package.directory) of_pip.back()["directory"] = true;
        if (package.source.kind != PipSource::Kind::unknown)
            of_pip.back()["source"] = source_to_json(package.source);
    }
    root["pip_requested"] = locked.pip_requested.value_or(std::vector<std::string>());
    if (!locked.exclude_newer.empty()) root["exclude_newer"] = locked.exclude_newer;
    if (locked.source_date_epoch) root["source_date_epoch"] = *locked.source_date_epoch;
    return root.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<CondaEnvironment> read_list_export(const fs::path& file) {
    CondaEnvironment environment;
    const auto take = [&](std::string_view line, std::size_t number) -> Status {
        if (line.starts_with('#')) return {};
        const auto first = line.find('=');
        const auto second = line.find('=', first == line.npos ? first : first + 1);
        const auto build = second == line.npos ? std::string_view() : line.substr(second + 1);
        if (build.starts_with("pypi_")) {
            environment.pip.push_back({.text = std::string(line.substr(0, first)) +
                                               "==" + std::string(line.substr(first + 1, second - first - 1)),
                                       .where = where_of(file, number)});
            return {};
        }
        auto spec = conda::parse_match_spec(line);
        if (!spec) spec.error().where = where_of(file, number);
        auto one = TRY(std::move(spec));
        environment.dependencies.push_back({.spec = std::move(one), .where = where_of(file, number)});
        return {};
    };
    TRY(each_line(file, take));
    return environment;
}

} // namespace containerize::spec

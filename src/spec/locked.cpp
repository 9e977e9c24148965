// Lists of exact packages: nothing is solved for them.
#include "spec/conda_environment.h"
#include "spec/text.h"
#include "spec/yaml.h"
#include "util/filesystem.h"
#include "util/json.h"
#include "util/url.h"

#include <algorithm>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

namespace containerize::spec {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int lock_format = 1;
constexpr std::uint64_t largest_file = std::uint64_t{64} << 20U;

Result<std::string> text_of(const fs::path& file) {
    auto content = read_file(file, largest_file);
    if (!content) {
        content.error().fault = Fault::input;
        return content;
    }
    return decode(*content, file);
}

std::string where_of(const fs::path& file, std::size_t line) {
    return file.string() + ":" + std::to_string(line);
}

/// Credentials are for the download alone: all else of a record is written into files.
void set_address(conda::PackageRecord& record, const std::string& url, const std::string& channel) {
    record.url = without_credentials(url);
    if (record.url != url) record.download_url = url;
    record.channel = without_credentials(channel);
}

/// The record of a package's URL or path, "#" and a checksum after it.
Result<conda::PackageRecord> record_of_url(const std::string& text, const fs::path& file,
                                           const std::string& where) {
    auto spec = conda::parse_match_spec(text);
    if (!spec || spec->url.empty()) {
        if (spec)
            return fail_input("this is not the URL of a package", spec->text.substr(0, 200), where,
                              "It ends in .conda or .tar.bz2.");
        spec.error().where = where;
        return fail(std::move(spec.error()));
    }
    conda::PackageRecord record;
    record.of_list = true;
    const auto parts = conda::parse_file_name(spec->file_name);
    record.name = parts->name;
    record.version = parts->version;
    record.build = parts->build;
    record.file_name = spec->file_name;
    record.subdir = spec->subdir;
    record.md5 = spec->md5;
    record.sha256 = spec->sha256;
    // Paths are relative to the list that has them.
    std::string url = spec->url;
    if (url.find("://") == std::string::npos)
        url = "file://" + fs::absolute(file.parent_path() / url).lexically_normal().string();
    set_address(record, url, spec->channel);
    return record;
}

bool is_for(const conda::PackageRecord& record, const std::string& subdir) {
    return record.subdir.empty() || record.subdir == subdir || record.subdir == "noarch";
}

Result<LockedEnvironment> read_explicit(const fs::path& file, const std::string& subdir) {
    auto text = text_of(file);
    if (!text) return fail(std::move(text.error()));
    LockedEnvironment locked;
    std::size_t number = 0;
    std::size_t unverified = 0;
    for (const auto whole : split_lines(*text)) {
        ++number;
        const auto line = trimmed(whole);
        constexpr std::string_view platform = "# platform:";
        if (line.starts_with(platform) && trimmed(line.substr(platform.size())) != subdir)
            return fail_input("this list is for " + std::string(trimmed(line.substr(platform.size()))) +
                                  ", and this machine is " + subdir,
                              {}, where_of(file, number), "Make a list for this platform.");
        if (line.empty() || line.starts_with('#') || line == "@EXPLICIT") continue;
        auto record = record_of_url(std::string(line), file, where_of(file, number));
        if (!record) return fail(std::move(record.error()));
        if (!is_for(*record, subdir))
            return fail_input("this package is for " + record->subdir + ", and this machine is " + subdir, {},
                              where_of(file, number), "Make a list for this platform.");
        unverified += record->md5.empty() && record->sha256.empty() ? 1 : 0;
        locked.packages.push_back(std::move(*record));
    }
    if (locked.packages.empty()) return fail_input("there is no package in this list", {}, file.string());
    if (unverified > 0)
        locked.notes.push_back(std::to_string(unverified) + " packages of " + file.string() +
                               " have no checksum: what is downloaded cannot be verified.");
    return locked;
}

/// A package of pip's in a lock.
struct PipPackage {
    std::string name, version;
    std::string location; ///< URL, or path relative to the lock; empty if the lock names none
    std::string sha256;
    bool editable = false;
};

/// The URL of a file or project beside the lock.
Result<std::string> local_url(const std::string& path, const fs::path& lock, const std::string& where) {
    const auto full = fs::absolute(lock.parent_path() / path).lexically_normal();
    std::error_code failed;
    if (!fs::exists(full, failed))
        return fail_input("there is no file or directory '" + path + "'", {}, where,
                          "Paths are relative to the lock file: put it beside what it locks.");
    return file_url(full.string());
}

/// A requirement that pip takes and verifies. What the lock has from somewhere comes from there alone: a
/// package of the same name on PyPI is another one.
Result<std::string> pip_requirement(const PipPackage& package, const fs::path& lock,
                                    const std::string& where) {
    if (package.location.empty()) return package.name + "==" + package.version;
    std::string url = package.location;
    if (!is_url(url)) {
        auto local = local_url(url, lock, where);
        if (!local) return local;
        url = std::move(*local);
    }
    if (package.editable) return "-e " + url;
    // Of a directory a lock has the checksum of other things.
    std::error_code failed;
    const bool verifiable = !package.sha256.empty() && url.find('#') == std::string::npos &&
                            !fs::is_directory(file_url_path(url), failed);
    if (verifiable) url += "#sha256=" + package.sha256;
    return package.name.empty() ? url : package.name + " @ " + url;
}

std::string scalar(const YAML::Node& node, const char* key) {
    const auto value = node[key];
    return value.IsDefined() && value.IsScalar() ? value.Scalar() : std::string();
}

std::vector<std::string> dependency_list(const YAML::Node& node) {
    std::vector<std::string> list;
    if (!node.IsDefined()) return list;
    if (node.IsSequence())
        for (const auto& one : node)
            if (one.IsScalar()) list.push_back(one.Scalar());
    if (node.IsMap()) // conda-lock: name -> condition
        for (const auto& one : node)
            if (one.first.IsScalar() && one.second.IsScalar())
                list.push_back(one.first.Scalar() + (one.second.Scalar().empty() || one.second.Scalar() == "*"
                                                         ? ""
                                                         : " " + one.second.Scalar()));
    return list;
}

Result<LockedEnvironment> read_conda_lock(const fs::path& file, const std::string& subdir) {
    auto yaml = YamlFile::read(file);
    if (!yaml) return fail(std::move(yaml.error()));
    const auto packages = yaml->root()["package"];
    if (!packages.IsSequence())
        return yaml->refuse(yaml->root(), "this conda-lock file has no list `package:`");
    LockedEnvironment locked;
    std::map<std::string, std::size_t> left_out;
    for (const auto& one : packages) {
        if (!one.IsMap()) return yaml->refuse(one, "a package must have keys");
        if (scalar(one, "platform") != subdir) continue;
        if (const auto category = scalar(one, "category"); !category.empty() && category != "main") {
            ++left_out[category];
            continue;
        }
        const auto url = scalar(one, "url");
        const auto hash = one["hash"];
        const auto sha256 = hash.IsMap() ? scalar(hash, "sha256") : std::string();
        if (scalar(one, "manager") == "pip") {
            auto text = pip_requirement({.name = scalar(one, "name"),
                                         .version = scalar(one, "version"),
                                         .location = url,
                                         .sha256 = sha256},
                                        file, yaml->where(one));
            if (!text) return fail(std::move(text.error()));
            locked.pip.push_back({.text = std::move(*text), .where = yaml->where(one)});
            continue;
        }
        auto record = record_of_url(url, file, yaml->where(one));
        if (!record) return fail(std::move(record.error()));
        record->sha256 = sha256;
        record->md5 = hash.IsMap() ? scalar(hash, "md5") : std::string();
        record->depends = dependency_list(one["dependencies"]);
        locked.packages.push_back(std::move(*record));
    }
    if (locked.packages.empty())
        return fail_input("this lock file has no package for " + subdir, {}, file.string(),
                          "Lock it again with that platform.");
    for (const auto& [category, count] : left_out)
        locked.notes.push_back(std::to_string(count) + " packages of the category '" + category +
                               "' are left out.");
    return locked;
}

Result<LockedEnvironment> read_pixi(const fs::path& file, const std::string& subdir) {
    auto yaml = YamlFile::read(file);
    if (!yaml) return fail(std::move(yaml.error()));
    const auto& root = yaml->root();
    const auto version = scalar(root, "version");
    if (version != "4" && version != "5" && version != "6")
        return yaml->refuse(root, "this pixi lock file has the version '" + version + "', which is not known",
                            "Versions 4 to 6 are.");
    std::map<std::string, YAML::Node> details;
    for (const auto& one : root["packages"]) {
        if (!one.IsMap()) continue;
        for (const char* key : {"conda", "pypi", "url", "path"})
            if (const auto url = scalar(one, key); !url.empty()) details.emplace(url, one);
    }
    const auto environment = root["environments"]["default"];
    if (!environment.IsMap()) return yaml->refuse(root, "this pixi lock file has no environment 'default'");
    LockedEnvironment locked;
    for (const auto& channel : environment["channels"])
        if (channel.IsMap()) locked.channels.push_back(without_credentials(scalar(channel, "url")));
    for (const auto& one : environment["packages"][subdir]) {
        const auto conda = scalar(one, "conda");
        const auto pypi = scalar(one, "pypi");
        const auto found = details.find(conda.empty() ? pypi : conda);
        const YAML::Node detail = found == details.end() ? YAML::Node(YAML::NodeType::Map) : found->second;
        if (!pypi.empty()) {
            auto text = pip_requirement({.name = scalar(detail, "name"),
                                         .version = scalar(detail, "version"),
                                         .location = pypi,
                                         .sha256 = scalar(detail, "sha256"),
                                         .editable = scalar(detail, "editable") == "true"},
                                        file, yaml->where(one));
            if (!text) return fail(std::move(text.error()));
            locked.pip.push_back({.text = std::move(*text), .where = yaml->where(one)});
            continue;
        }
        auto record = record_of_url(conda, file, yaml->where(one));
        if (!record) return fail(std::move(record.error()));
        record->sha256 = scalar(detail, "sha256");
        record->md5 = scalar(detail, "md5");
        record->depends = dependency_list(detail["depends"]);
        locked.packages.push_back(std::move(*record));
    }
    if (locked.packages.empty())
        return fail_input("this lock file has no package for " + subdir, {}, file.string(),
                          "Lock it again with that platform.");
    return locked;
}

Result<LockedEnvironment> read_own(const fs::path& file, const std::string& subdir) {
    auto text = text_of(file);
    if (!text) return fail(std::move(text.error()));
    // The json library reports by exceptions: they become errors here.
    try {
        const json root = parse_json(*text);
        if (const int format = root.at("containerize-lock").get<int>(); format != lock_format)
            return fail_input("this lock file has the format " + std::to_string(format) +
                                  ", and this version knows " + std::to_string(lock_format),
                              {}, file.string(), "Use the version of containerize that made it.");
        if (const auto platform = root.at("subdir").get<std::string>(); platform != subdir)
            return fail_input("this lock file is for " + platform + ", and this machine is " + subdir, {},
                              file.string());
        LockedEnvironment locked;
        for (const auto& one : root.at("conda")) {
            auto record = conda::parse_record(one);
            if (!record) return fail_input(record.error().what, record.error().why, file.string());
            record->file_name = one.at("fn").get<std::string>();
            set_address(*record, one.at("url").get<std::string>(), one.value("channel", ""));
            if (record->sha256.empty() && record->md5.empty())
                return fail_input("a package of this lock file has no checksum", record->name, file.string());
            locked.packages.push_back(std::move(*record));
        }
        for (const auto& one : root.at("pip"))
            locked.pip.push_back({.text = one.get<std::string>(), .where = file.string()});
        for (const auto& [name, spec] : root.at("requested").items())
            locked.requested.emplace(name, spec.get<std::string>());
        locked.pip_requested = root.at("pip_requested").get<std::vector<std::string>>();
        locked.channels = root.at("channels").get<std::vector<std::string>>();
        for (const auto& [name, value] : root.at("variables").items())
            locked.variables.emplace_back(name, value.get<std::string>());
        if (root.contains("source_date_epoch"))
            locked.source_date_epoch = root.at("source_date_epoch").get<std::uint32_t>();
        return locked;
    } catch (const json::exception& problem) {
        return fail_input("this is not a whole lock file", problem.what(), file.string());
    }
}

// Dependencies before those that need them; otherwise the given order.
void sort_by_dependency(std::vector<conda::PackageRecord>& packages) {
    std::map<std::string, std::size_t> by_name;
    for (std::size_t i = 0; i < packages.size(); ++i)
        by_name.emplace(packages[i].name, i);
    std::vector<conda::PackageRecord> sorted;
    std::vector<char> seen(packages.size(), 0);
    const std::function<void(std::size_t)> visit = [&](std::size_t index) {
        if (std::exchange(seen[index], 1) != 0) return;
        for (const auto& dependency : packages[index].depends) {
            const auto name = dependency.substr(0, dependency.find_first_of(" =<>!~["));
            if (const auto found = by_name.find(name); found != by_name.end()) visit(found->second);
        }
        sorted.push_back(std::move(packages[index]));
    };
    for (std::size_t i = 0; i < packages.size(); ++i)
        visit(i);
    packages = std::move(sorted);
}

} // namespace

Result<LockedEnvironment> read_locked(const fs::path& file, SpecKind kind, const std::string& subdir) {
    if (kind == SpecKind::lock) return read_own(file, subdir); // in link order already
    // yaml-cpp reports what is missing in a lock by exceptions: they become errors here.
    try {
        auto locked = kind == SpecKind::conda_lock  ? read_conda_lock(file, subdir)
                      : kind == SpecKind::pixi_lock ? read_pixi(file, subdir)
                                                    : read_explicit(file, subdir);
        if (locked) sort_by_dependency(locked->packages);
        return locked;
    } catch (const YAML::Exception& problem) {
        return fail_input("this is not a whole lock file", problem.what(), file.string());
    }
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
    root["requested"] = locked.requested;
    root["pip_requested"] = locked.pip_requested.value_or(std::vector<std::string>());
    if (locked.source_date_epoch) root["source_date_epoch"] = *locked.source_date_epoch;
    return root.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<CondaEnvironment> read_list_export(const fs::path& file) {
    auto text = text_of(file);
    if (!text) return fail(std::move(text.error()));
    CondaEnvironment environment;
    std::size_t number = 0;
    for (const auto whole : split_lines(*text)) {
        ++number;
        const auto line = trimmed(whole);
        if (line.empty() || line.starts_with('#')) continue;
        const auto first = line.find('=');
        const auto second = line.find('=', first == line.npos ? first : first + 1);
        const auto build = second == line.npos ? std::string_view() : line.substr(second + 1);
        if (build.starts_with("pypi_")) {
            environment.pip.push_back({.text = std::string(line.substr(0, first)) +
                                               "==" + std::string(line.substr(first + 1, second - first - 1)),
                                       .where = where_of(file, number)});
            continue;
        }
        auto spec = conda::parse_match_spec(line);
        if (!spec) {
            spec.error().where = where_of(file, number);
            return fail(std::move(spec.error()));
        }
        environment.dependencies.push_back({.spec = std::move(*spec), .where = where_of(file, number)});
    }
    return environment;
}

} // namespace containerize::spec

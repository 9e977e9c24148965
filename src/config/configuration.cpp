#include "config/configuration.h"

#include "config/config_file.h"
#include "config/expand.h"
#include "core/filesystem.h"
#include "core/ownership.h"
#include "core/text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

namespace containerize::config {

namespace {

struct Source {
    fs::path file;
    Variable variable{}; ///< names the file; none: the file is optional
    bool must_be_ours = false;
    bool of_tykky = false;
};

std::vector<Source> sources(const Environment& environment, const fs::path& root) {
    std::vector<Source> list = {{.file = machine_file(root)}};
    if (const auto named = variable(environment, "CONTAINERIZE_CONFIG"); !named.empty())
        list.push_back({.file = named, .variable = "CONTAINERIZE_CONFIG", .must_be_ours = true});
    fs::path home = variable(environment, "XDG_CONFIG_HOME");
    if (!home.is_absolute()) home = fs::path(variable(environment, "HOME")) / ".config";
    if (home.is_absolute()) list.push_back({.file = home / "containerize/config.yaml", .must_be_ours = true});
    if (const auto named = variable(environment, "CW_GLOBAL_YAML"); !named.empty())
        list.push_back({.file = named, .variable = "CW_GLOBAL_YAML", .of_tykky = true});
    return list;
}

std::unexpected<Error> fail_missing(const Source& source) {
    return fail_input("this configuration file does not exist", {}, source.file.string(),
                      "The path is from " + std::string(source.variable.name()) + ". Correct or unset it.");
}

/// Replaces the entry with this name, or adds it.
void put(std::vector<Setting>& entries, const Setting& entry) {
    const auto found = std::ranges::find(entries, entry.name, &Setting::name);
    if (found == entries.end())
        entries.push_back(entry);
    else
        *found = entry;
}

} // namespace

fs::path machine_file(const fs::path& root) {
    return root / "etc/containerize/config.yaml";
}

Configuration::Configuration() {
    for (const auto& key : all_keys())
        if (!key.standard.empty())
            values_.at(static_cast<std::size_t>(key.key))
                .settings.push_back({.value = std::string(key.standard)});
}

Result<Configuration> Configuration::read(const Environment& environment, const fs::path& root) {
    Configuration configuration;
    for (const auto& source : sources(environment, root)) {
        std::error_code failed;
        if (fs::status(source.file, failed).type() == fs::file_type::not_found) {
            if (source.variable.name() == nullptr) continue;
            return fail_missing(source);
        }
        auto file = TRY(resolve(source.file));
        if (std::ranges::find(configuration.files_, file) != configuration.files_.end()) continue;
        if (source.must_be_ours) TRY(check_trusted(source.file));
        auto content = source.of_tykky ? read_tykky_file(file) : read_file_content(file);
        if (!content.mistakes.empty()) return fail(std::move(content.mistakes.front()));
        configuration.files_.push_back(std::move(file));
        for (auto& note : content.notes)
            configuration.notes_.push_back(std::move(note));
        for (const auto& given : content.statements)
            configuration.add(given);
    }
    return configuration;
}

void Configuration::add(const Given& given) {
    auto& value = values_.at(static_cast<std::size_t>(given.key));
    const auto overruled = [&](const std::string& what, const std::string& by) {
        notes_.push_back(
            fmt::format("`{}:` in {} has no effect, because {} forces another value", what, given.where, by));
    };
    if (info(given.key).kind == Kind::map) {
        for (const auto& entry : given.settings) {
            const auto earlier = std::ranges::find(value.settings, entry.name, &Setting::name);
            if (earlier != value.settings.end() && earlier->forced)
                overruled(entry.name, earlier->where);
            else
                put(value.settings, entry);
        }
        return;
    }
    if (value.forced) return overruled(std::string(info(given.key).name), value.forced_where);
    switch (given.section) {
    case Section::force:
        value = {.settings = given.settings, .forced = true, .forced_where = given.where};
        break;
    case Section::defaults:
        value.settings = given.settings;
        break;
    case Section::prepends:
        value.prepends.insert(value.prepends.begin(), given.settings.begin(), given.settings.end());
        break;
    case Section::appends:
        value.appends.insert(value.appends.end(), given.settings.begin(), given.settings.end());
        break;
    }
}

const Value& Configuration::operator[](Key key) const {
    return values_.at(static_cast<std::size_t>(key));
}

std::string Configuration::text(Key key) const {
    const auto& settings = (*this)[key].settings;
    return settings.empty() ? "" : settings.front().value;
}

bool Configuration::flag(Key key) const {
    return parse_flag(text(key)).value_or(false);
}

unsigned Configuration::number(Key key) const {
    return to_number<unsigned>(text(key)).value_or(0);
}

namespace {

Result<fs::path> directory_of(Key key, const Setting& setting, const Environment& environment) {
    const auto about = "`" + std::string(info(key).name) + ": " + setting.value + "`";
    auto path = expand(setting.value, [&](const std::string& name) -> std::optional<std::string> {
        const auto found = environment.find(name);
        if (found == environment.end()) return std::nullopt;
        return found->second;
    });
    if (!path)
        return fail_input(about + ": " + path.error().what, {}, setting.where, std::move(path.error().hint));
    if (!path->starts_with('/'))
        return fail_input(about + " is not an absolute path", "it is '" + *path + "'", setting.where);
    return fs::path(*path);
}

} // namespace

Result<fs::path> Configuration::directory(Key key, const Environment& environment) const {
    const auto& settings = (*this)[key].settings;
    if (settings.empty()) return fs::path();
    return directory_of(key, settings.front(), environment);
}

Result<std::vector<fs::path>> Configuration::directories(Key key, const Environment& environment) const {
    std::vector<fs::path> all;
    for (const auto& setting : list(key)) {
        auto directory = TRY(directory_of(key, setting, environment));
        all.push_back(std::move(directory));
    }
    return all;
}

std::vector<Setting> Configuration::list(Key key) const {
    const auto& value = (*this)[key];
    auto all = value.prepends;
    all.insert(all.end(), value.settings.begin(), value.settings.end());
    all.insert(all.end(), value.appends.begin(), value.appends.end());
    return all;
}

Status check_trusted(const fs::path& file) {
    if (struct stat info{}; stat(file.c_str(), &info) != 0)
        return fail_errno("cannot read the configuration", file.string());
    const auto foreign = find_foreign(fs::absolute(file).string());
    if (!foreign) return {};
    const bool of_another = foreign->why.find("another user") != std::string::npos;
    return fail_input("this configuration is not used",
                      (foreign->path == file ? "" : foreign->path + ": ") + foreign->why, file.string(),
                      of_another ? "Use a copy that you own."
                                 : "Remove that permission: chmod go-w " + foreign->path);
}

std::vector<Error> check_file(const fs::path& file) {
    return read_file_content(file).mistakes;
}

} // namespace containerize::config

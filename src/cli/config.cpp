#include "cli/command.h"
#include "config/configuration.h"
#include "core/filesystem.h"
#include "util/log.h"
#include "util/process.h"
#include "util/redact.h"

#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::cli {

namespace {

using config::Configuration;
using config::KeyInfo;
using config::Kind;
using config::Setting;
using nlohmann::json;

struct ConfigArguments {
    bool as_json = false;
    std::string file;
};

constexpr const char* config_examples = R"(Files; later ones override earlier ones:
  /etc/containerize/config.yaml, $CONTAINERIZE_CONFIG, ~/.config/containerize/config.yaml, $CW_GLOBAL_YAML

Example of a file:
  defaults:
    compression: zstd:9
  force:
    staging: /local/$USER
  appends:
    channels:
      - bioconda)";

json typed_value(const KeyInfo& key, const Setting& setting) {
    if (key.kind == Kind::flag) return setting.value == "true";
    if (key.kind == Kind::number) return std::stoul(setting.value);
    return setting.value;
}

/// "value" and "where" have the same shape: both scalars, lists or maps.
json as_json(const KeyInfo& key, const Configuration& configuration, const Environment& environment) {
    json value;
    json where;
    const auto settings = configuration.list(key.key);
    json shown = {{"forced", configuration[key.key].forced}};
    if (key.kind == Kind::list) {
        value = where = json::array();
        for (const auto& one : settings) {
            value.push_back(one.value);
            where.push_back(one.where);
        }
    } else if (key.kind == Kind::map) {
        value = where = shown["forced"] = json::object();
        for (const auto& one : settings) {
            value[one.name] = one.value;
            where[one.name] = one.where;
            shown["forced"][one.name] = one.forced;
        }
    } else {
        where = settings.empty() ? "default" : settings.front().where;
        if (!settings.empty()) value = typed_value(key, settings.front());
    }
    if (key.kind == Kind::directory)
        if (const auto directory = configuration.directory(key.key, environment);
            directory && !directory->empty())
            shown["here"] = directory->string();
    shown["value"] = std::move(value);
    shown["where"] = std::move(where);
    return shown;
}

void print_setting(std::string_view name, const std::string& value, const std::string& where, bool forced) {
    fmt::print("{:14} {:34} {}{}\n", name, redacted(value), where, forced ? " (forced)" : "");
}

std::string text_of(const KeyInfo& key, const Setting& setting, const Configuration& configuration,
                    const Environment& environment) {
    if (key.kind == Kind::map) return setting.name + "=" + setting.value;
    if (key.kind != Kind::directory) return setting.value;
    const auto directory = configuration.directory(key.key, environment);
    if (!directory) return setting.value + " (cannot be used here)";
    return directory->string() == setting.value ? setting.value
                                                : setting.value + " (" + directory->string() + ")";
}

void print_key(const KeyInfo& key, const Configuration& configuration, const Environment& environment) {
    const bool forced = configuration[key.key].forced;
    const auto settings = configuration.list(key.key);
    if (settings.empty())
        print_setting(key.name, "-", forced ? configuration[key.key].forced_where : "default", forced);
    std::string_view name = key.name;
    for (const auto& setting : settings) {
        print_setting(name, text_of(key, setting, configuration, environment), setting.where, setting.forced);
        name = "";
    }
}

Result<int> run_show(const ConfigArguments& arguments) {
    const auto environment = current_environment();
    auto configuration = TRY(Configuration::read(environment));
    if (!arguments.as_json) {
        for (const auto& key : config::all_keys())
            print_key(key, configuration, environment);
        for (const auto& note : configuration.notes())
            fmt::print("Note: {}\n", note);
        return 0;
    }
    json settings = json::object();
    for (const auto& key : config::all_keys())
        settings[std::string(key.name)] = as_json(key, configuration, environment);
    json files = json::array();
    for (const auto& file : configuration.files())
        files.push_back(file.string());
    const json all = {
        {"files", std::move(files)}, {"settings", std::move(settings)}, {"notes", configuration.notes()}};
    fmt::print("{}\n", redacted(all.dump(2, ' ', false, json::error_handler_t::replace)));
    return 0;
}

Result<int> run_check(const ConfigArguments& arguments) {
    const auto mistakes = config::check_file(arguments.file);
    for (const auto& mistake : mistakes)
        fmt::print(stderr, "containerize: {}\n", redacted(to_string(mistake)));
    if (!mistakes.empty()) return 2;
    // Only a warning: the file may be meant for another place, where it can be trusted.
    if (const auto trusted = config::check_trusted(arguments.file); !trusted)
        log::warn(to_string(trusted.error()));
    fmt::print("{}: no mistakes\n", arguments.file);
    return 0;
}

} // namespace

void add_config(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("config", "Show the settings of the site and the user");
    command->require_subcommand(1);
    const auto arguments = std::make_shared<ConfigArguments>();
    auto* show = command->add_subcommand("show", "Show each setting, its value and where it comes from");
    show->add_flag("--json", arguments->as_json, json_description);
    on(*show, call, [arguments] { return run_show(*arguments); });
    auto* check = command->add_subcommand("check", "Check a configuration file for mistakes");
    check->add_option("FILE", arguments->file, "The file")->required();
    on(*check, call, [arguments] { return run_check(*arguments); });
    command->footer(config_examples); // last, because commands would inherit it
}

} // namespace containerize::cli

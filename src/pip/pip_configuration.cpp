#include "pip/pip_configuration.h"

#include "core/text.h"
#include "util/redact.h"
#include "util/user_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace containerize::pip {

namespace {

/// Parses `pip config list`: global.index-url='https://...' and :env:.find-links='...'.
std::vector<Setting> parse_configuration(std::string_view text) {
    std::vector<Setting> settings;
    for (const auto line : split(text, '\n')) {
        const auto equals = line.find('=');
        const auto dot = line.substr(0, equals).rfind('.');
        if (equals == std::string_view::npos || dot == std::string_view::npos) continue;
        auto value = line.substr(equals + 1);
        if (value.size() >= 2 && (value.front() == '\'' || value.front() == '"')) {
            value.remove_prefix(1);
            value.remove_suffix(1);
        }
        settings.push_back({std::string(line.substr(0, dot)),
                            std::string(line.substr(dot + 1, equals - dot - 1)), std::string(value)});
    }
    return settings;
}

bool misdirects(const Setting& setting) {
    constexpr std::array<std::string_view, 6> names = {"target", "prefix",  "root",
                                                       "python", "dry-run", "only-deps"};
    return std::ranges::find(names, setting.name) != names.end();
}

/// "index-url" -> "PIP_INDEX_URL"
std::string variable_of(const std::string& setting) {
    std::string name = "PIP_";
    for (const char c : setting)
        name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return name;
}

bool names_python(std::string_view line) {
    const auto name = line.substr(0, line.find('='));
    return name.ends_with(".python");
}

/// With `python` in the user's configuration, another Python would answer, or none. PIP_PYTHON wins over it,
/// but makes pip start a second time, so it is set only if it is needed.
Result<Outcome> ask_for_settings(Command pip) {
    (*pip.environment)["PIP_QUIET"] = "0"; // otherwise `quiet` in a file hides all settings
    const auto python = pip.argv.front();
    pip.argv.insert(pip.argv.end(), {"config", "list"});
    auto answer = TRY(capture(pip));
    if (answer.ok() && std::ranges::none_of(split_lines(answer.output), names_python)) return answer;
    (*pip.environment)["PIP_PYTHON"] = python;
    return capture(pip);
}

/// Empty for a pip before 10, which cannot list them.
Result<std::string> list_settings(Command pip) {
    const auto answer = TRY(ask_for_settings(std::move(pip)));
    remember_secrets_in(answer.output);
    // With `version` or `help` in a file, pip prints that and does nothing else.
    const bool is_other = answer.ok() && !answer.output.empty() && parse_configuration(answer.output).empty();
    if (is_other || (!answer.ok() && answer.errors.find("unknown command") == std::string::npos))
        return fail({.what = "pip cannot read its configuration",
                     .why = "it printed\n" + tail(answer.errors.empty() ? answer.output : answer.errors, 6),
                     .hint = "Correct pip.conf or the variables that begin with PIP_."});
    std::string settings;
    for (const auto line : split_lines(answer.output))
        if (!line.starts_with(":env:.python=") && !line.starts_with(":env:.quiet="))
            settings += std::string(line) + "\n";
    return settings;
}

} // namespace

bool misdirect(const std::vector<Setting>& settings) {
    return std::ranges::any_of(settings, misdirects);
}

void pass_without_misdirecting(const std::vector<Setting>& settings, Environment& environment) {
    for (const auto& setting : settings)
        if (misdirects(setting))
            environment.erase(variable_of(setting.name));
        else
            environment[variable_of(setting.name)] = joined_list(setting.value, " ");
    environment["PIP_CONFIG_FILE"] = "/dev/null";
}

Result<Configuration> configure(Command pip) {
    auto listed = TRY(list_settings(pip));
    if (const auto settings = settings_of_install(listed); misdirect(settings)) {
        pass_without_misdirecting(settings, *pip.environment);
        listed = TRY(list_settings(pip));
    }
    return Configuration{.settings = std::move(listed), .environment = std::move(*pip.environment)};
}

std::vector<Setting> settings_of_install(std::string_view configuration) {
    const auto settings = parse_configuration(configuration);
    std::vector<Setting> in_order;
    // Sections for other commands (pip download) do not apply.
    for (const std::string_view section : {"global", "install", ":env:"})
        std::ranges::copy_if(settings, std::back_inserter(in_order),
                             [&](const Setting& setting) { return setting.section == section; });
    return in_order;
}

std::vector<std::filesystem::path> configuration_files(const Environment& environment) {
    namespace fs = std::filesystem;
    std::vector<fs::path> files = {"/etc/pip.conf", "/etc/xdg/pip/pip.conf", "/etc/uv/uv.toml"};
    for (const auto name : VariableList{"PIP_CONFIG_FILE", "UV_CONFIG_FILE"})
        if (auto file = variable(environment, name); !file.empty()) files.emplace_back(std::move(file));
    const fs::path home = variable(environment, "HOME");
    if (!home.is_absolute()) return files;
    files.push_back(home / ".pip/pip.conf");
    const fs::path given = variable(environment, "XDG_CONFIG_HOME");
    for (const auto& configuration : {home / ".config", given})
        for (const char* file : {"pip/pip.conf", "uv/uv.toml"})
            if (configuration.is_absolute()) files.push_back(configuration / file);
    return files;
}

std::string joined_list(std::string value, std::string_view separator) {
    // pip prints line breaks in a value as "\n".
    replace_all(value, "\\n", " ");
    return joined(words_in(value, " "), separator);
}

} // namespace containerize::pip

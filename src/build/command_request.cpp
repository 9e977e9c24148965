#include "build/command_request.h"

#include "build/command_environments.h"
#include "conda/virtual_packages.h"
#include "core/filesystem.h"
#include "core/printable.h"
#include "core/text.h"
#include "core/url.h"
#include "core/version.h"
#include "pip/interpreter.h"
#include "pip/pip_configuration.h"
#include "pip/python_choice.h"
#include "spec/requirement_options.h"
#include "util/digest.h"
#include "util/json.h"
#include "util/user_text.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <sys/stat.h>

#include <nlohmann/json.hpp>

namespace containerize::build {

namespace {

using nlohmann::json;

/// Increased when the same request would give another environment, for another reason than a new version.
constexpr int key_format = 2;

bool is_control(char c) {
    return std::iscntrl(static_cast<unsigned char>(c)) != 0;
}

std::string dumped(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string yaml_list(const char* name, const std::vector<std::string>& items) {
    std::string text = std::string(name) + ":\n";
    for (const auto& item : items)
        text += "- " + quoted(item) + "\n";
    return text;
}

/// Tells files apart without reading them.
json identity_of(const fs::path& file) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) return nullptr;
    return {file.string(), info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

/// Without users and passwords in URLs. All else may decide what an address gives.
std::string without_logins(std::string_view text) {
    constexpr std::string_view mark = "://";
    std::string rest;
    for (auto at = text.find(mark); at != text.npos; at = text.find(mark)) {
        rest += text.substr(0, at + mark.size());
        text.remove_prefix(at + mark.size());
        text.remove_prefix(url_login_size(text.substr(0, text.find_first_of(" \t\r\n"))));
    }
    return rest.append(text);
}

json without_logins(const std::vector<std::string>& texts) {
    json list = json::array();
    for (const auto& one : texts)
        list.push_back(without_logins(one));
    return list;
}

json without_logins(const std::vector<Located>& texts) {
    json list = json::array();
    for (const auto& one : texts)
        list.push_back(without_logins(one.text));
    return list;
}

/// What a line means depends on the working directory if it names something there, and on the local archives
/// that it names. Directories cannot be told apart so cheaply. Null for other lines.
json local_part(std::string_view line, const fs::path& working_directory) {
    // The value may follow these at once.
    bool is_local = line.starts_with("-f") || line.starts_with("-e");
    json files = json::array();
    for (const auto& word : words_in(line, " \t=;[#")) {
        if (word.find("://") != word.npos) continue;
        const auto file = working_directory / word;
        is_local = is_local || word.find('/') != word.npos || quiet::exists(file);
        if (quiet::is_regular_file(file)) files.push_back(identity_of(file));
    }
    return is_local ? json{working_directory.string(), files} : json();
}

/// The lines of the included file follow it.
bool includes_file(std::string_view line) {
    if (!line.starts_with('-')) return false;
    const auto* option = spec::find_option(words_in(line, " \t=").front());
    return option != nullptr && option->kind == spec::OptionKind::include && !line.contains("://");
}

/// Whether pip writes the file that this line of pip.conf, or value of a variable, names. It changes with
/// each build.
bool names_output(std::string_view setting) {
    return setting.starts_with("log") || setting.starts_with("local-log") || setting.starts_with("report");
}

std::string setting_of(const std::string& variable) {
    auto name = variable.substr(variable.find('_') + 1);
    std::ranges::transform(name, name.begin(), [](unsigned char c) {
        return c == '_' ? '-' : static_cast<char>(std::tolower(c));
    });
    return name;
}

std::string without_output(std::string_view text) {
    std::string rest;
    for (const auto line : split_lines(text))
        if (!names_output(trimmed(line))) rest += std::string(line) + "\n";
    return rest;
}

/// Identities of the files that a setting, or a file of settings, names.
json files_named(std::string_view text, const std::vector<fs::path>& directories) {
    std::set<std::string> words;
    // In lists of pip, blanks separate paths; in TOML, they belong to what is quoted.
    for (const char* separators : {" \t\r\n=,[]\"'", "\r\n\"'"})
        for (const auto& word : words_in(text, separators))
            if (word.find("://") == word.npos) words.emplace(trimmed(word));
    json files = json::array();
    for (const auto& word : words)
        for (const auto& directory : directories)
            if (const auto file = directory / word; quiet::is_regular_file(file))
                files.push_back(identity_of(file));
    return files;
}

/// The files in which uv looks for settings from the working directory upwards.
json project_files(const fs::path& working_directory) {
    json files = json::array();
    for (auto directory = working_directory;; directory = directory.parent_path()) {
        files.push_back(identity_of(directory / "uv.toml"));
        // Most projects have no settings of uv: the same environment serves all of them.
        const auto project = directory / "pyproject.toml";
        if (const auto text = read_file(project); text && text->contains("uv"))
            files.push_back(identity_of(project));
        if (directory == directory.parent_path()) break;
    }
    std::erase_if(files.get_ref<json::array_t&>(), [](const json& one) { return one.is_null(); });
    return files;
}

json pip_parts(const inputs::Inputs& inputs) {
    json lines = json::array();
    for (const auto& line : inputs.requirements->lines)
        if (!includes_file(line.text))
            lines.push_back({without_logins(line.text), line.constraint,
                             local_part(line.text, inputs.working_directory)});
    json variables = json::object();
    for (const auto& [name, value] : inputs.environment)
        if ((name.starts_with("PIP_") || name.starts_with("UV_")) && !name.ends_with("_CACHE_DIR"))
            variables[name] = {without_logins(value), names_output(setting_of(name))
                                                          ? json()
                                                          : files_named(value, {inputs.working_directory})};
    json files = json::array();
    for (const auto& file : pip::configuration_files(inputs.environment))
        if (const auto text = read_file(file))
            files.push_back(
                {without_logins(*text),
                 files_named(without_output(*text), {inputs.working_directory, file.parent_path()})});
    return {{"lines", lines},
            {"variables", variables},
            {"files", files},
            {"project", project_files(inputs.working_directory)}};
}

json conda_parts(const CommandRequest& request, const conda::Config& config) {
    return {{"packages", without_logins(request.packages)},
            {"channels", without_logins(request.channels)},
            {"configured", without_logins(config.channels)},
            {"defaults", without_logins(config.default_channels)},
            {"alias", without_logins(config.channel_alias)},
            {"custom", config.custom_channels},
            {"multiple", config.custom_multichannels},
            {"mirrored", config.mirrored_channels},
            {"allowed", config.allowed_channels},
            {"denied", config.denied_channels},
            {"priority", static_cast<int>(config.channel_priority)},
            {"pinned", without_logins(config.pinned_packages)},
            {"disallowed", without_logins(config.disallowed_packages)},
            {"always", without_logins(config.default_packages)},
            {"pip", config.pip_with_python}};
}

/// What each launch of the environment gets from the configuration.
json launch_parts(const inputs::BuildOptions& options) {
    return {{"settings", manifest::to_json(options.settings)},
            {"environment", manifest::to_json(options.site.environment)},
            {"forced", manifest::to_json(options.site.forced_environment)},
            {"auto_base", options.auto_base},
            {"wrapper_paths", options.site.wrapper_paths}};
}

} // namespace

Status check_packages(const CommandRequest& request) {
    for (const auto& one : request.packages) {
        const auto text = trimmed(one);
        // After a backslash, the next package would be a part of this one.
        if (!text.empty() && !text.starts_with('-') && !text.starts_with('#') && !text.ends_with('\\') &&
            std::ranges::none_of(one, is_control))
            continue;
        return fail_input(
            "this is no package: '" + printable_line(one) + "'", {}, "--with",
            request.conda
                ? "Give a name and optional conditions, such as `numpy>=1.26`."
                : "Give a name and optional conditions, such as `numpy>=1.26`. Options of pip can be "
                  "in a file for --with-requirements.");
    }
    return {};
}

const char* specification_name(const CommandRequest& request) {
    return request.conda ? "environment.yml" : "requirements.txt";
}

std::string specification_of(const CommandRequest& request) {
    std::string text;
    if (request.conda) {
        if (!request.channels.empty()) text += yaml_list("channels", request.channels);
        return text + yaml_list("dependencies", request.packages);
    }
    for (const auto& one : request.packages)
        text += one + "\n";
    for (const auto& file : request.requirements)
        text += "-r " + escaped(file.string(), " \t'\"\\#") + "\n"; // options are read like words of a shell
    return text;
}

std::vector<std::string> words_of(const CommandRequest& request) {
    std::vector<std::string> words;
    for (const auto& channel : request.channels) {
        words.emplace_back("-c");
        words.push_back(channel);
    }
    words.insert(words.end(), request.packages.begin(), request.packages.end());
    for (const auto& file : request.requirements) {
        words.emplace_back("-r");
        words.push_back(file.string());
    }
    return words;
}

Result<json> machine_of(const inputs::BuildOptions& options, const inputs::Inputs& inputs) {
    json packages = json::array();
    const auto found = TRY(conda::virtual_packages(
        inputs.environment, {.subdir = options.conda.subdir, .cuda = options.conda.cuda},
        image::DirectoryView("/")));
    for (const auto& one : found)
        if (one.name != "__linux") // a new kernel is no reason to build again
            packages.push_back({one.name, one.version, one.build});
    json python;
    const bool is_host_python =
        options.settings.base.reference == "host" && !pip::is_of_conda(options.python);
    if (inputs.requirements && is_host_python)
        if (const auto interpreter = pip::find_interpreter(options.python, inputs.environment))
            python = identity_of(*interpreter);
    return json{{"platform", options.conda.subdir}, {"packages", packages}, {"python", python}};
}

std::string key_of(const CommandRequest& request, const inputs::BuildOptions& options,
                   const inputs::Inputs& inputs, const json& machine) {
    const json parts = {{"format", key_format},
                        {"version", this_version},
                        {"machine", machine},
                        {"python", options.python},
                        {"installer", static_cast<int>(options.installer)},
                        {"exclude_newer", request.exclude_newer.value_or("")},
                        {"allow_defaults", options.conda.allow_defaults},
                        {"launch", launch_parts(options)},
                        {"pip", inputs.requirements ? pip_parts(inputs) : json()},
                        {"conda", request.conda ? conda_parts(request, inputs.conda_config) : json()}};
    return sha256(dumped(parts)).substr(0, key_digits);
}

} // namespace containerize::build

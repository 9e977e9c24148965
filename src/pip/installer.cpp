#include "pip/installer.h"

#include "core/entries.h"
#include "core/url.h"
#include "pip/pip_configuration.h"
#include "spec/requirement_options.h"
#include "util/json.h"
#include "util/user_text.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include <fmt/ranges.h>

namespace containerize::pip {

namespace {

/// pip's settings and uv's variables for them; empty if a setting does not affect what is installed.
constexpr auto translations = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"index-url", "UV_DEFAULT_INDEX"},
    {"extra-index-url", "UV_INDEX"},
    {"find-links", "UV_FIND_LINKS"},
    {"cert", "SSL_CERT_FILE"},
    {"constraint", "UV_CONSTRAINT"},
    {"timeout", ""},
    {"default-timeout", ""},
    {"retries", ""},
    {"cache-dir", ""},
    {"no-cache-dir", ""},
    {"disable-pip-version-check", ""},
    {"no-input", ""},
    {"progress-bar", ""},
    {"root-user-action", ""},
    {"no-color", ""},
    {"quiet", ""},
    {"verbose", ""},
    {"no-python-version-warning", ""},
    {"user", ""}, // a venv has no user site
    {"require-virtualenv", ""},
    {"config-file", ""}, // its settings are in the list
    {"compile", ""},
    {"no-compile", ""},
    {"log", ""},
    {"exists-action", ""},
    {"format", ""},
});

/// Options in requirements files that uv treats like pip.
constexpr auto options_of_uv = std::to_array<std::string_view>(
    {"--requirement", "--constraint", "--editable", "--index-url", "--extra-index-url", "--no-index",
     "--find-links", "--no-binary", "--only-binary", "--require-hashes", "--hash"});

/// Sets variables for uv. Returns the name of the first setting that uv does not have; otherwise empty.
std::string translate(const std::vector<Setting>& settings, Environment& variables) {
    for (const auto& setting : settings) {
        const auto* known = std::ranges::find(translations, std::string_view(setting.name),
                                              &std::pair<std::string_view, std::string_view>::first);
        if (known == translations.end()) return setting.name;
        const auto variable = known->second;
        if (!variable.empty())
            variables[std::string(variable)] =
                joined_list(setting.value, variable == "UV_FIND_LINKS" ? "," : " ");
    }
    return {};
}

/// The first option in the requirements that uv ignores or treats differently; empty if there is none.
std::string option_unknown_to_uv(const spec::Requirements& requirements) {
    for (const auto& line : requirements.lines) {
        const auto words = split_words(line.text);
        if (!words) continue;
        for (const std::string_view word : *words) {
            if (!word.starts_with("--") && !(word.starts_with('-') && word == words->front())) continue;
            const auto* option = spec::find_option(word);
            if (option == nullptr || std::ranges::find(options_of_uv, option->name) == options_of_uv.end())
                return std::string(word.substr(0, word.find('=')));
        }
    }
    return {};
}

bool has_hashes(const spec::Requirements& requirements) {
    return std::ranges::any_of(requirements.lines, [](const spec::RequirementLine& line) {
        return line.text.find(" --hash") != std::string::npos;
    });
}

// Makes uv behave like pip where their defaults differ.
void agree_with_pip(const spec::Requirements& requirements, const Environment& environment,
                    Environment& variables) {
    // pip takes the best version of all indexes, uv that of the first index with the package.
    variables.emplace("UV_INDEX_STRATEGY", "unsafe-best-match");
    // With one hash in the file, pip requires hashes for all requirements.
    if (has_hashes(requirements)) variables.emplace("UV_REQUIRE_HASHES", "true");
    for (const auto name : VariableList{"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"})
        if (const auto bundle = variable(environment, name); !bundle.empty())
            variables.emplace("SSL_CERT_FILE", bundle);
    // uv's cache is usually on another filesystem, where it would warn at each hard link.
    variables.emplace("UV_LINK_MODE", "copy");
}

Choice by_pip(const std::string& reason) {
    return {.installer = Installer::pip, .reason = "pip: " + reason};
}

/// Selects the lines of an installer's output that explain its failure. Must see all lines in order.
class ReasonFinder {
public:
    bool wants(std::string_view line) {
        const auto indent = line.find_first_not_of(' ');
        if (indent == std::string_view::npos) return false;
        const auto text = line.substr(indent);
        if (traceback_) {
            if (indent > *traceback_) return false;
            traceback_.reset();
            return true; // the exception, which follows the calls
        }
        if (text.starts_with("Traceback (most recent call last):")) {
            traceback_ = indent;
            explains_ = false;
            return false;
        }
        const bool begins = line.starts_with("ERROR:") || line.starts_with("The conflict is caused by:") ||
                            line.starts_with("  ╰─▶ ") || line.starts_with("  cause: ");
        explains_ = begins || (explains_ && indent >= 4);
        return explains_ || line.starts_with("error:") || line.starts_with("  × ") ||
               line.starts_with("WARNING: 401 Error") || text.starts_with("fatal:");
    }

private:
    bool explains_ = false;                ///< indented lines belong to the previous line
    std::optional<std::size_t> traceback_; ///< indentation of the current traceback
};

/// The lines in which the installer explains its failure; its last lines if there are none.
std::string reason_in(const std::string& output) {
    constexpr std::size_t most = 12;
    ReasonFinder finder;
    std::string marked;
    std::size_t count = 0;
    for (const auto line : split_lines(output))
        if (finder.wants(line) && ++count <= most) marked += std::string(line) + "\n";
    return tail(marked.empty() ? output : marked, most);
}

/// The hosts other than PyPI in pip's line "Looking in indexes: URL, URL".
std::vector<std::string> own_indexes_in(std::string_view output) {
    constexpr std::string_view says = "Looking in indexes: ";
    std::vector<std::string> hosts;
    for (const auto line : split_lines(output)) {
        if (!line.starts_with(says)) continue;
        for (const auto part : std::views::split(line.substr(says.size()), std::string_view(", "))) {
            auto host = url_host(std::string_view(part.begin(), part.end()));
            if (!host.empty() && host != "pypi.org" && std::ranges::find(hosts, host) == hosts.end())
                hosts.push_back(std::move(host));
        }
    }
    return hosts;
}

/// pip skips an index that rejects the login, and then reports that there is no such package.
std::string login_hint(std::string_view output) {
    if (output.find("(from versions: none)") == std::string_view::npos) return {};
    const auto hosts = own_indexes_in(output);
    if (hosts.empty()) return {};
    return fmt::format("pip reports the same if an index refuses the login. Check the login for {}, in the "
                       "index URL or in ~/.netrc.",
                       fmt::join(hosts, " and "));
}

void append(std::vector<std::string>& argv, const std::vector<std::string>& words) {
    argv.insert(argv.end(), words.begin(), words.end());
}

/// pip has no switch for this: use no index, let downloads fail at a proxy that does not exist, and restrict
/// git to local repositories.
void go_offline(bool by_uv, Environment& environment) {
    if (by_uv) environment["UV_OFFLINE"] = "1";
    environment["PIP_NO_INDEX"] = "1";
    environment["PIP_PROXY"] = "http://127.0.0.1:9";
    environment["PIP_RETRIES"] = "0";
    environment["GIT_ALLOW_PROTOCOL"] = "file";
}

std::string offline_hint(bool by_uv) {
    if (by_uv) return "With --offline, uv uses only packages in its cache and in --find-links directories.";
    return "With --offline, pip uses only packages in --find-links directories. It cannot use its cache for "
           "packages from an index. uv can use its own cache.";
}

/// The parts of uv's or pip's command that do not depend on the task.
Command command_for(const Choice& choice, const Target& target) {
    const bool by_uv = choice.installer == Installer::uv;
    Command command;
    command.argv = by_uv ? std::vector<std::string>{choice.uv.string(), "pip"} : pip_command(target);
    command.environment = target.environment;
    if (by_uv)
        for (const auto& [variable, value] : choice.for_uv)
            command.environment->insert_or_assign(variable, value);
    if (target.offline) go_offline(by_uv, *command.environment);
    command.in_child = target.in_child;
    return command;
}

} // namespace

Result<Installer> parse_installer(std::string_view text) {
    if (text == "auto") return Installer::automatic;
    if (text == "pip") return Installer::pip;
    if (text == "uv") return Installer::uv;
    if (text == "pip-tree") return Installer::pip_tree;
    return fail_input("unknown installer: '" + std::string(text) + "'", {}, {},
                      "Give auto, pip, uv or pip-tree.");
}

Result<Choice> choose_installer(Installer wanted, const std::optional<std::filesystem::path>& uv,
                                std::string_view pip_configuration, const spec::Requirements& requirements,
                                const Environment& environment) {
    if (wanted == Installer::pip || wanted == Installer::pip_tree) return by_pip("as requested");
    if (!uv) {
        if (wanted == Installer::uv)
            return fail_input("uv is not on PATH", {}, {}, "Install uv, or use --installer pip.");
        return by_pip("uv is not on PATH");
    }
    Choice choice{.installer = Installer::uv, .uv = *uv};
    if (const auto setting = translate(settings_of_install(pip_configuration), choice.for_uv);
        !setting.empty())
        choice.warning = "uv does not support your pip setting '" + setting + "'";
    else if (const auto option = option_unknown_to_uv(requirements); !option.empty())
        choice.warning = "uv does not support " + option + ", which your requirements contain";
    if (!choice.warning.empty() && wanted == Installer::automatic) return by_pip(choice.warning);
    agree_with_pip(requirements, environment, choice.for_uv);
    // What the user set for uv itself wins over what pip is told.
    std::erase_if(choice.for_uv, [&](const auto& one) { return environment.contains(one.first); });
    choice.reason = "uv: " + uv->string();
    return choice;
}

std::vector<std::string> pip_command(const Target& target) {
    if (target.pip.empty()) return {target.python.string(), "-m", "pip"};
    return {target.python.string(), target.pip.string()};
}

Status install(const Choice& choice, const InstallRequest& request, const Detail& detail) {
    const bool by_uv = choice.installer == Installer::uv;
    auto command = command_for(choice, request.target);
    append(command.argv, {"install"});
    if (by_uv)
        append(command.argv, {"--python", request.target.python.string(), "--python-version",
                              request.target.python_version, "--no-progress", "--verify-hashes"});
    else
        append(command.argv, {"--no-compile", "--no-input", "--progress-bar", "off"});
    append(command.argv, {"-r", request.requirements.string()});
    if (!request.constraints.empty()) append(command.argv, {"-c", request.constraints.string()});
    if (!by_uv && !request.report.empty()) append(command.argv, {"--report", request.report.string()});
    if (!request.dependencies) append(command.argv, {"--no-deps"});
    if (request.dry_run) append(command.argv, {"--dry-run"});
    if (request.reinstall) append(command.argv, {by_uv ? "--reinstall" : "--ignore-installed"});
    if (request.verified) append(command.argv, {"--require-hashes"});
    // uv refuses constraints without checksums where checksums are required. All versions are fixed then
    // anyway.
    if (request.verified || command.environment->contains("UV_REQUIRE_HASHES"))
        command.environment->erase("UV_CONSTRAINT");
    command.working_directory = request.working_directory;
    command.on_line = detail;
    auto outcome = TRY(run(command));
    if (outcome.ok()) return {};
    return fail({.what = std::string(by_uv ? "uv" : "pip") + " could not " +
                         (request.dry_run ? "resolve" : "install") + " the requirements",
                 .why = "it printed\n" + reason_in(outcome.output),
                 .where = request.requirements.string(),
                 .hint = request.target.offline ? offline_hint(by_uv) : login_hint(outcome.output)});
}

std::optional<NamedVersion> installed_by_uv(std::string_view line) {
    constexpr std::string_view added = " + ";
    const auto equals = line.find("==");
    if (!line.starts_with(added) || equals == line.npos) return std::nullopt;
    const auto version = line.substr(equals + 2);
    return NamedVersion{.name = std::string(line.substr(added.size(), equals - added.size())),
                        .version = std::string(version.substr(0, version.find(' ')))};
}

Result<std::vector<NamedVersion>> list_by_uv(const Choice& choice, const Target& target,
                                             const std::filesystem::path& directory) {
    auto command = command_for(choice, target);
    append(command.argv, {"list", "--python", target.python.string(), "--format", "json"});
    command.working_directory = directory;
    const auto outcome = TRY(capture(command));
    const auto listed = parse_json_quietly(outcome.output);
    if (!outcome.ok() || !listed.is_array())
        return fail({.what = "uv could not list the installed packages",
                     .why = "it printed\n" + reason_in(outcome.output + outcome.errors)});
    std::vector<NamedVersion> packages;
    for (const auto& one : listed)
        if (!one.contains("editable_project_location")) // the metadata may be elsewhere
            packages.push_back({.name = text_of(one, "name"), .version = text_of(one, "version")});
    return packages;
}

Status uninstall(const Choice& choice, const Target& target, const std::vector<std::string>& names,
                 const Detail& detail) {
    const bool by_uv = choice.installer == Installer::uv;
    auto command = command_for(choice, target);
    append(command.argv, {"uninstall"});
    if (by_uv)
        append(command.argv, {"--python", target.python.string()});
    else
        append(command.argv, {"--yes", "--no-input"});
    append(command.argv, names);
    command.on_line = detail;
    auto outcome = TRY(run(command));
    if (outcome.ok()) return {};
    return fail({.what = std::string(by_uv ? "uv" : "pip") + " could not remove packages",
                 .why = "it printed\n" + reason_in(outcome.output)});
}

Result<std::string> lock_by_uv(const Choice& choice, const Target& target,
                               const std::filesystem::path& pins) {
    auto command = command_for(choice, target);
    append(command.argv, {"compile", "--python", target.python.string(), "--python-version",
                          target.python_version, "--no-progress", "--quiet", "--no-deps", "--no-header",
                          "--no-annotate", "--format", "pylock.toml", pins.string()});
    command.working_directory = pins.parent_path();
    auto outcome = TRY(capture(command));
    if (!outcome.ok())
        return fail({.what = "uv could not determine the files of these packages",
                     .why = "it printed\n" + reason_in(outcome.errors)});
    return std::move(outcome.output);
}

Result<std::filesystem::path> build_by_pip(const Target& target, const std::filesystem::path& requirement,
                                           const std::filesystem::path& directory, const Detail& detail) {
    auto command = command_for(by_pip({}), target);
    append(command.argv, {"wheel", "--no-deps", "--no-input", "--progress-bar", "off", "--wheel-dir",
                          directory.string(), "-r", requirement.string()});
    command.working_directory = directory;
    command.on_line = detail;
    auto outcome = TRY(run(command));
    std::error_code failed;
    std::vector<std::filesystem::path> wheels;
    for (const auto& entry : entries_in(directory, failed))
        if (entry.path().extension() == ".whl") wheels.push_back(entry.path());
    if (outcome.ok() && wheels.size() == 1) return wheels.front();
    return fail({.what = "pip could not build this package",
                 .why = "it printed\n" + reason_in(outcome.output),
                 .hint = target.offline ? offline_hint(false) : login_hint(outcome.output)});
}

} // namespace containerize::pip

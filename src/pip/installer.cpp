#include "pip/installer.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace containerize::pip {

namespace {

/// pip's settings that uv has under another name. An empty name: it changes nothing of what is installed.
constexpr std::array<std::pair<std::string_view, std::string_view>, 19> translations{{
    {"index-url", "UV_DEFAULT_INDEX"},
    {"extra-index-url", "UV_INDEX"},
    {"find-links", "UV_FIND_LINKS"},
    {"no-index", "UV_NO_INDEX"},
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
}};

struct Setting {
    std::string section; ///< "global", "install", ":env:"
    std::string name;
    std::string value;
};

/// Lines of `pip config list`: global.index-url='https://...' and :env:.find-links='...'.
std::vector<Setting> parse_configuration(std::string_view text) {
    std::vector<Setting> settings;
    while (!text.empty()) {
        const auto end = text.find('\n');
        const auto line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
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

// pip prints a list of several lines as one string with "\n" written out; uv wants blanks, and commas for
// links.
std::string joined_list(std::string value, std::string_view variable) {
    const std::string separator = variable == "UV_FIND_LINKS" ? "," : " ";
    for (std::size_t at = 0; (at = value.find("\\n", at)) != std::string::npos;)
        value.replace(at, 2, " ");
    std::string list;
    for (std::size_t start = 0; (start = value.find_first_not_of(' ', start)) != std::string::npos;) {
        const auto end = std::min(value.find(' ', start), value.size());
        list += (list.empty() ? "" : separator) + value.substr(start, end - start);
        start = end;
    }
    return list;
}

/// Fills in what uv needs; the name of the first setting that it has no word for, or nothing.
std::string translate(const std::vector<Setting>& settings, Environment& variables) {
    for (const auto& setting : settings) {
        const auto* known = std::ranges::find(translations, std::string_view(setting.name),
                                              &std::pair<std::string_view, std::string_view>::first);
        // A section for another command (pip download) does not concern an installation.
        if (setting.section != "global" && setting.section != "install" && setting.section != ":env:")
            continue;
        if (known == translations.end()) return setting.name;
        if (!known->second.empty())
            variables[std::string(known->second)] = joined_list(setting.value, known->second);
    }
    return {};
}

/// The lines in which the installer says why it failed; its last lines where it marks none.
std::string reason_in(const std::string& output) {
    std::string marked;
    std::size_t count = 0;
    for (std::size_t start = 0; start < output.size();) {
        const auto end = std::min(output.find('\n', start), output.size());
        const std::string line = output.substr(start, end - start);
        start = end + 1;
        const bool says = line.starts_with("ERROR:") || line.starts_with("error:") ||
                          line.starts_with("  × ") || line.starts_with("  ╰─▶ ");
        if (says && ++count <= 12) marked += line + "\n";
    }
    return tail(marked.empty() ? output : marked, 12);
}

} // namespace

Result<Installer> parse_installer(std::string_view text) {
    if (text == "auto") return Installer::automatic;
    if (text == "pip") return Installer::pip;
    if (text == "uv") return Installer::uv;
    return fail_input("not an installer: '" + std::string(text) + "'", {}, {}, "Give auto, pip or uv.");
}

Result<Choice> choose_installer(Installer wanted, std::optional<std::filesystem::path> uv,
                                std::string_view pip_configuration) {
    if (wanted == Installer::pip)
        return Choice{.installer = Installer::pip, .uv = {}, .for_uv = {}, .reason = "pip, as asked for"};
    if (!uv) {
        if (wanted == Installer::uv)
            return fail_input("there is no uv on PATH", {}, {}, "Install uv, or use --installer pip.");
        return Choice{.installer = Installer::pip, .uv = {}, .for_uv = {}, .reason = "pip (no uv on PATH)"};
    }
    Choice choice{.installer = Installer::uv, .uv = *uv, .for_uv = {}, .reason = {}};
    const std::string lost = translate(parse_configuration(pip_configuration), choice.for_uv);
    if (!lost.empty() && wanted == Installer::automatic)
        return Choice{.installer = Installer::pip,
                      .uv = {},
                      .for_uv = {},
                      .reason = "pip, because uv does not know your pip setting '" + lost + "'"};
    choice.reason = "uv (" + uv->string() + ")";
    return choice;
}

Status install(const Choice& choice, const InstallRequest& request, const Detail& detail) {
    const bool by_uv = choice.installer == Installer::uv;
    const std::string name = by_uv ? "uv" : "pip";
    Command command;
    command.environment = request.environment;
    if (by_uv) {
        command.argv = {choice.uv.string(),      "pip",           "install", "--python",
                        request.python.string(), "--no-progress", "-r",      request.requirements.string()};
        // What the user set for uv itself wins over what pip is told.
        for (const auto& [variable, value] : choice.for_uv)
            command.environment->emplace(variable, value);
        // Its cache is on another filesystem than the staging directory, as a rule: then it would warn of
        // each link.
        command.environment->emplace("UV_LINK_MODE", "copy");
    } else {
        command.argv = {request.python.string(),
                        "-m",
                        "pip",
                        "install",
                        "--no-compile",
                        "--no-input",
                        "--progress-bar",
                        "off",
                        "-r",
                        request.requirements.string()};
    }
    command.working_directory = request.working_directory;
    command.in_child = request.in_child;
    command.on_line = detail;
    auto outcome = run(command);
    if (!outcome) return fail(std::move(outcome.error()));
    if (outcome->ok()) return {};
    return fail({.what = name + " could not install the requirements",
                 .why = "it said\n" + reason_in(outcome->output),
                 .where = request.requirements.string(),
                 .hint = {}});
}

} // namespace containerize::pip

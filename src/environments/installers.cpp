#include "environments/installers.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "core/url.h"
#include "environments/pinned_uv.h"
#include "environments/requirements_text.h"
#include "environments/scripts.h"
#include "pip/distributions.h"
#include "pip/pip_configuration.h"
#include "util/log.h"
#include "util/process.h"
#include "util/redact.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

namespace containerize::environments {

namespace {

/// Whether a pip has what this release brought. `version` is "pip 23.0.1".
bool is_since(std::pair<int, int> release, const std::string& version) {
    int major = 0, minor = 0;
    std::sscanf(version.c_str(), "%*s %d.%d", &major, &minor);
    return std::pair(major, minor) >= release;
}

/// The versions of each package. A package can have several: after an update, and as its metadata and their
/// directory's name may differ.
using Packages = std::map<std::string, std::set<std::string>>;

/// The packages of an environment by the names of their metadata directories, as uv reads them, and by what
/// these contain.
Packages packages_in(const fs::path& root) {
    Packages packages;
    const auto add = [&](std::string_view name, std::string_view version) {
        packages[pip::normalised_name(name)].insert(pip::normalised_version(version));
    };
    std::error_code ignored;
    for (const auto& library : entries_in(root / "lib", ignored)) {
        const auto site_packages = library.path() / "site-packages";
        for (const auto& entry : entries_in(site_packages, ignored))
            // "six-1.16.0.dist-info", "six-1.16.0-py3.11.egg-info"
            if (const auto name = entry.path().stem().string(); name.find('-') != name.npos)
                add(split(name, '-')[0], split(name, '-')[1]);
        for (const auto& one : pip::read_distributions(site_packages))
            add(one.name, one.version);
    }
    return packages;
}

bool missing_in(const Packages& packages, const pip::NamedVersion& wanted) {
    if (wanted.name.find(redaction_mark) != wanted.name.npos) return false; // the name is a secret elsewhere
    const auto found = packages.find(pip::normalised_name(wanted.name));
    if (found == packages.end()) return true;
    return !wanted.version.empty() && !found->second.contains(pip::normalised_version(wanted.version));
}

void note_editable(const spec::Requirements& requirements) {
    for (const auto& editable : requirements.editable) {
        const bool is_cloned = is_url(editable) && !editable.starts_with("file:");
        if (is_cloned) continue; // cloned into the environment
        log::info("Note: '" + editable +
                  "' is installed as editable, so it stays in its directory, outside the image.");
    }
}

} // namespace

/// Copies pip to the staging directory, for environments that must not contain it. Takes the pip that the
/// environment's Python bundles for venvs, so that nothing is downloaded and no other Python is needed.
Result<fs::path> Installers::place_pip() {
    const fs::path venv = context_.staging / "venv-of-pip";
    auto made = TRY(capture(context_.inside({context_.python().string(), "-m", "venv", venv.string()})));
    std::error_code failed;
    for (const auto& library : entries_in(venv / "lib", failed)) {
        const auto code = library.path() / "site-packages/pip";
        if (!fs::exists(code / "__main__.py", failed)) continue;
        // Isolated, so that no other package beside it looks installed.
        const fs::path place = context_.staging / "pip";
        fs::create_directory(place, failed);
        if (!failed) fs::rename(code, place / "pip", failed);
        if (failed) return fail_errno("cannot move pip aside", place.string(), failed.value());
        fs::remove_all(venv, failed);
        return place / "pip";
    }
    return fail({.what = "the environment has no pip, and its Python does not include one",
                 .why = made.ok() ? "" : "`python -m venv` printed\n" + tail(made.errors, 6),
                 .hint = "Add pip to the environment, or put uv on PATH."});
}

/// The environment's own uv if it was asked for, otherwise the one on PATH.
std::optional<fs::path> Installers::uv() const {
    const bool has_own = context_.options.uv && quiet::exists(context_.root() / "bin/uv");
    return has_own ? context_.prefix / "bin/uv" : context_.inputs.uv;
}

Status Installers::prepare() {
    if (std::exchange(prepared_, true)) return {};
    target_ = {.python = context_.python(),
               .pip = {},
               .offline = context_.options.conda.offline || context_.inputs.conda_config.offline,
               .environment = context_.environment,
               .in_child = context_.join};
    // pip's own byte-code is not wanted, and that of the packages is compiled later.
    target_.environment["PYTHONDONTWRITEBYTECODE"] = "1";
    const auto version = TRY(version_of_pip());
    has_pip_ = !version.empty();
    if (!has_pip_) return {};
    writes_report_ = is_since({22, 2}, version);
    knows_times_ = is_since({26, 0}, version);
    auto asked = context_.inside(pip::pip_command(target_));
    asked.environment = target_.environment;
    auto configuration = TRY(pip::configure(std::move(asked)));
    configuration_ = std::move(configuration.settings);
    target_.environment = std::move(configuration.environment);
    set_defaults();
    return {};
}

/// "pip 23.0.1"; empty if there is no pip and uv can be used. Makes sure that there is a pip.
Result<std::string> Installers::version_of_pip() {
    const auto ask = [&] {
        // `pip --version` takes ten times as long.
        constexpr const char* show = R"(
import sys
sys.path[1:1] = sys.argv[1:]
import pip
print("pip", pip.__version__))";
        std::vector<std::string> argv = {context_.python().string(), "-c", show};
        if (!target_.pip.empty()) argv.push_back(target_.pip.parent_path().string());
        auto command = context_.inside(std::move(argv));
        command.environment = target_.environment;
        return capture(command);
    };
    auto version = ask();
    if (version && !version->ok()) {
        auto place = place_pip();
        const auto wanted = context_.options.installer;
        const bool needed = !uv() || wanted == pip::Installer::pip || wanted == pip::Installer::pip_tree;
        if (!place && (needed || interrupted())) return fail(std::move(place.error()));
        if (!place) return std::string();
        target_.pip = std::move(*place);
        version = ask();
    }
    if (!version) return fail(std::move(version.error()));
    if (!version->ok())
        return fail({.what = "pip does not tell its version",
                     .why = "it printed\n" + tail(version->output + version->errors, 6)});
    return std::move(version->output);
}

Result<std::string> Installers::version_of_python() const {
    constexpr const char* show = "import sys; print('.'.join(map(str, sys.version_info[:3])))";
    const auto answer = TRY(capture(context_.inside({context_.python().string(), "-c", show})));
    if (!answer.ok())
        return fail({.what = "the environment's Python does not tell its version",
                     .why = "it printed\n" + tail(answer.errors, 6)});
    return std::string(trimmed(answer.output));
}

/// Not before pip is asked for its settings: these are ours, and none that uv would lack. The user's
/// variables take precedence, those in files do not.
void Installers::set_defaults() {
    const Environment defaults = {
        // By default pip clones editable packages into the working directory unless it is in a venv.
        {"PIP_SRC", (context_.prefix / "src").string()},
        // "switch": reset the URL of an existing clone, which differs because its login was removed.
        {"PIP_EXISTS_ACTION", "s"}};
    for (const auto& [name, value] : defaults)
        if (!context_.environment.contains(name)) target_.environment[name] = value;
}

Result<pip::Choice> Installers::choice_of(const std::optional<fs::path>& uv,
                                          const spec::Requirements& requirements) const {
    return pip::choose_installer(context_.options.installer, uv, configuration_, requirements,
                                 context_.inputs.environment);
}

/// A uv of ours resolves in a fraction of the time that pip takes. Nothing if pip has to.
std::optional<pip::Choice> Installers::choice_of_pinned_uv(const spec::Requirements& requirements) const {
    const auto settings = pip::settings_of_install(configuration_);
    const auto& environment = context_.inputs.environment;
    const auto by_pip = [](const std::string& reason) {
        log::detail("pip resolves the requirements, because " + reason);
        return std::nullopt;
    };
    if (auto obstacle = obstacle_to_pinned_uv(settings, requirements, environment); !obstacle.empty())
        return by_pip(obstacle);
    // Before it is downloaded: would it be used?
    auto choice = choice_of("uv", requirements);
    if (!choice) return by_pip(to_string(choice.error()));
    if (choice->installer != pip::Installer::uv) {
        log::detail("resolving with " + choice->reason);
        return std::nullopt;
    }
    const auto downloads = pip::download_settings(settings, requirements, environment, false);
    if (!downloads.obstacle.empty()) return by_pip(downloads.obstacle);
    const auto pinned = pinned_uv(context_, downloads.http, target_.offline);
    if (!pinned) return by_pip(to_string(pinned.error()));
    choice->uv = pinned->program;
    choice->reason = "uv: " + pinned->program.string();
    choice->for_uv["UV_CACHE_DIR"] = pinned->cache.string();
    choice->for_uv["UV_NO_CONFIG"] = "1"; // the user's files are for the user's uv
    return std::move(*choice);
}

Status Installers::choose(const spec::Requirements& requirements, Uv which) {
    TRY(prepare());
    choice_ = TRY(choice_of(uv(), requirements));
    if (which == Uv::or_pinned && context_.options.installer == pip::Installer::automatic && !uv())
        if (auto pinned = choice_of_pinned_uv(requirements)) choice_ = std::move(*pinned);
    if (choice_.installer == pip::Installer::uv) target_.python_version = TRY(version_of_python());
    return exclude_newer();
}

/// For pip and uv, and for what they run to build packages.
void Installers::limit_age(Environment& environment) const {
    if (!context_.options.exclude_newer) return;
    const auto time = context_.options.exclude_newer->text();
    environment["UV_EXCLUDE_NEWER"] = time;
    environment["PIP_UPLOADED_PRIOR_TO"] = time;
    // It may have packages that were built with newer ones.
    environment["PIP_NO_CACHE_DIR"] = "1";
}

/// After pip was asked for its settings, because this is none of the user's.
Status Installers::exclude_newer() {
    const auto& cutoff = context_.options.exclude_newer;
    if (!cutoff) return {};
    if (choice_.installer == pip::Installer::pip && !knows_times_)
        return fail_input("--exclude-newer needs uv, or pip 26.0 or newer, for the packages of pip",
                          "this environment's pip is older", context_.inputs.spec.string(),
                          "Put uv on PATH. In an environment.yml, you can also request pip>=26.");
    limit_age(target_.environment);
    return {};
}

/// Whether git reads settings from GIT_CONFIG_ variables (2.31 or newer).
bool Installers::git_takes_settings() const {
    const auto said = capture(context_.inside({"git", "--version"}));
    if (!said || !said->ok()) return false;
    int major = 0, minor = 0;
    if (std::sscanf(said->output.c_str(), "git version %d.%d", &major, &minor) != 2) return false;
    return std::pair(major, minor) >= std::pair(2, 31);
}

/// Empty if git cannot be given them.
std::vector<pip::GitLogin> Installers::git_logins(const spec::Requirements& requirements) const {
    auto logins = pip::git_logins_in(requirements);
    if (!logins.empty() && !git_takes_settings()) logins.clear();
    return logins;
}

Result<pip::InstallRequest> Installers::request_for(const RequirementsToInstall& requirements) {
    pip::InstallRequest request{.target = target_,
                                .requirements = requirements.file,
                                .working_directory = requirements.directory,
                                .constraints = requirements.constraints,
                                .report = writes_report_ ? report_file() : fs::path(),
                                .dependencies = requirements.dependencies,
                                .verified = requirements.verified};
    const auto of_git = git_logins(requirements.read);
    const auto of_indexes = index_logins(requirements.read);
    if (of_git.empty() && of_indexes.empty()) return request;
    auto copy =
        copy_requirements(requirements.read, context_.staging / "without-logins", [&](std::string_view line) {
            const auto text = of_git.empty() ? std::string(line) : pip::without_git_logins(line);
            return pip::without_index_logins(text, of_indexes);
        });
    if (!copy) return fail(std::move(copy.error()));
    request.requirements = std::move(*copy);
    pip::hand_to_git(of_git, request.target.environment);
    TRY(hand_to_pip(of_indexes, request.target.environment));
    return request;
}

/// Empty for uv: only pip passes index URLs to subprocesses, whose command lines others can see.
pip::IndexLogins Installers::index_logins(const spec::Requirements& requirements) const {
    if (choice_.installer == pip::Installer::uv) return {};
    std::vector<std::string> texts;
    for (const auto& line : requirements.lines)
        texts.push_back(line.text);
    for (const auto& [variable, addresses] : pip::index_settings(configuration_))
        texts.push_back(addresses);
    return pip::index_logins_in(texts);
}

Status Installers::hand_to_pip(const pip::IndexLogins& logins, Environment& environment) const {
    if (logins.empty()) return {};
    for (const auto& [variable, addresses] : pip::index_settings(configuration_))
        if (auto without = pip::without_index_logins(addresses, logins); without != addresses)
            environment[variable] = std::move(without);
    const auto file = netrc_file();
    // The staging directory is private, so the file's initial mode does not matter.
    TRY(write_file(file, pip::netrc_with(netrc_of_user(), logins)));
    std::error_code failed;
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write, failed);
    if (failed) return fail_errno("cannot write the file", file.string(), failed.value());
    environment["NETRC"] = file.string();
    return {};
}

/// The netrc file that pip would read. Like pip, ignores a file that Python's netrc module cannot parse.
std::string Installers::netrc_of_user() const {
    constexpr const char* find = R"(
import netrc, os
places = [os.environ["NETRC"]] if "NETRC" in os.environ else ["~/.netrc", "~/_netrc"]
file = next(filter(os.path.exists, map(os.path.expanduser, places)))
netrc.netrc(file)
print(file, end=""))";
    const auto found = capture(context_.inside({context_.python().string(), "-c", find}));
    return found && found->ok() ? read_file(found->output).value_or("") : "";
}

fs::path Installers::netrc_file() const {
    return context_.staging / "netrc";
}

Status Installers::begin(const spec::Requirements& requirements, Uv which) {
    // Now, since their variables have been expanded.
    for (const auto& line : requirements.lines) {
        remember_secrets_in(line.text);
        for (const auto& [name, value] : line.variables)
            remember_variable(name, value);
    }
    return choose(requirements, which);
}

void Installers::announce(const RequirementsToInstall& requirements) {
    if (!announced_.insert(requirements.file).second) return;
    note_editable(requirements.read);
    if (!choice_.warning.empty()) log::warn(choice_.warning);
    log::detail("installing with " + choice_.reason);
}

/// Runs pip or uv, and explains its failure.
Status Installers::run(const RequirementsToInstall& requirements, const pip::InstallRequest& request,
                       const pip::Detail& detail) const {
    std::error_code ignored;
    fs::remove(report_file(), ignored);
    auto done = pip::install(choice_, request, detail);
    fs::remove(netrc_file(), ignored);
    if (done) return {};
    done.error().where = (requirements.input.empty() ? requirements.file : requirements.input).string();
    if (!requirements.constraints.empty() && !interrupted()) {
        auto& hint = done.error().hint;
        hint += (hint.empty() ? "" : "\n") +
                std::string("pip does not change packages from conda. If one of them is in the way, request "
                            "another version from conda, or give --no-constraints.");
    }
    return done;
}

Status Installers::install(const RequirementsToInstall& requirements, Stage& stage) {
    TRY(begin(requirements.read, Uv::of_user));
    announce(requirements);
    const auto request = TRY(request_for(requirements));
    std::vector<pip::NamedVersion> told;
    TRY(run(requirements, request, [&](std::string_view line) {
        stage.detail(line);
        if (auto one = pip::installed_by_uv(line)) told.push_back(std::move(*one));
    }));
    if (choice_.installer == pip::Installer::uv)
        TRY(check_place(told, requirements.read, requirements.directory));
    context_.record["installer"] = name();
    return repair_scripts(context_.root() / "bin", context_.prefix);
}

/// uv's files may tell it to work elsewhere, which its command line cannot undo: then the environment lacks
/// what uv told that it installed; or what uv finds there, which it lists since 0.9.16; or all that was
/// requested, if an older uv found everything there and told nothing.
Status Installers::check_place(const std::vector<pip::NamedVersion>& told,
                               const spec::Requirements& requirements, const fs::path& directory) const {
    const auto present = packages_in(context_.root());
    std::vector<std::string> missing;
    for (const auto& packages : {told, TRY(pip::list_by_uv(choice_, target_, directory))})
        for (const auto& one : packages)
            if (missing_in(present, one)) missing.push_back(one.name);
    if (told.empty() && missing.empty() && std::ranges::all_of(requirements.lines, [&](const auto& line) {
            return line.name.empty() || missing_in(present, {.name = line.name});
        }))
        for (const auto& line : requirements.lines)
            if (!line.name.empty()) missing.push_back(line.name);
    if (missing.empty()) return {};
    std::ranges::sort(missing);
    missing.erase(std::ranges::unique(missing).begin(), missing.end());
    return fail(
        {.what = "uv did not install into the environment",
         .why = "these packages are missing: " + joined(missing, ", "),
         .hint = "Remove `target` and `prefix` from uv.toml, and from [tool.uv.pip] in pyproject.toml, or "
                 "use --installer pip."});
}

/// By pip, where there is one: uv's files may tell it to remove them elsewhere.
Status Installers::uninstall(const std::vector<std::string>& names, Stage& stage) {
    TRY(choose({}, Uv::of_user));
    if (has_pip_)
        choice_ = {.installer = pip::Installer::pip};
    else
        TRY(check_place({}, {}, {}));
    return pip::uninstall(choice_, target_, names, [&stage](std::string_view line) { stage.detail(line); });
}

std::string Installers::report() const {
    return read_file(report_file()).value_or("");
}

std::string Installers::name() const {
    return choice_.installer == pip::Installer::uv ? "uv" : "pip";
}

fs::path Installers::report_file() const {
    return context_.staging / "pip-report.json";
}

} // namespace containerize::environments

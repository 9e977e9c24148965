// Installers, where pip or uv only decide what to install.
#include "conda/cache_directory.h"
#include "conda/package_cache.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "core/url.h"
#include "environments/installers.h"
#include "environments/pip_lock.h"
#include "pip/distributions.h"
#include "pip/pip_configuration.h"
#include "pip/tags.h"
#include "spec/requirement_options.h"
#include "util/digest.h"
#include "util/log.h"
#include "util/redact.h"
#include "util/user_text.h"

#include <algorithm>
#include <utility>

namespace containerize::environments {

namespace {

using pip::Resolution;
using pip::ResolvedPackage;

bool must_be_built(const ResolvedPackage& package) {
    return package.kind == ResolvedPackage::Kind::needs_build;
}

/// The name at the start of a requirement, normalised; not of a constraint or an option.
std::string name_at_start(std::string_view line) {
    const auto end = std::ranges::find_if_not(
        line, [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; });
    return pip::normalised_name(std::string_view(line.begin(), end));
}

/// The checksums in a requirement, as "sha256:DIGITS": of its options, and of its URL.
std::vector<std::string> hashes_in(const std::string& line) {
    std::vector<std::string> hashes;
    bool is_value = false;
    for (const auto& word : split_words(line).value_or(std::vector<std::string>())) {
        const auto* option = word.starts_with("--") ? spec::find_option(word) : nullptr;
        const bool is_hash = option != nullptr && option->name == "--hash";
        if (is_value)
            hashes.push_back(lower(word));
        else if (is_hash && word.find('=') != word.npos)
            hashes.push_back(lower(spec::attached_value(word)));
        else if (const auto fragment = word.find('#'); fragment != word.npos && is_url(word))
            for (const auto part : split(std::string_view(word).substr(fragment + 1), '&'))
                for (const std::string_view kind :
                     {"md5=", "sha1=", "sha224=", "sha256=", "sha384=", "sha512="})
                    if (part.starts_with(kind)) {
                        hashes.push_back(lower(part));
                        hashes.back()[kind.size() - 1] = ':';
                    }
        is_value = is_hash && word.find('=') == word.npos;
    }
    return hashes;
}

/// What requirements say about packages, beyond their versions.
struct Wishes {
    std::set<std::string> requested;
    pip::Permitted permitted;
    std::string unknown_hash; ///< a checksum that cannot be compared here; empty if there is none
};

Wishes wishes_in(const spec::Requirements& requirements) {
    constexpr std::string_view known = "sha256:";
    Wishes wishes;
    for (const auto& line : requirements.lines) {
        if (line.text.starts_with('-')) continue;
        const auto name = name_at_start(line.text);
        if (!line.constraint) wishes.requested.insert(name);
        for (const auto& hash : hashes_in(line.text))
            if (hash.starts_with(known))
                wishes.permitted[name].insert(hash.substr(known.size()));
            else
                wishes.unknown_hash = hash.substr(0, hash.find(':'));
    }
    return wishes;
}

/// Whether a requirement has options for its own build.
bool has_build_options(const spec::Requirements& requirements) {
    return std::ranges::any_of(requirements.lines, [](const spec::RequirementLine& line) {
        return line.text.find(" --config-setting") != std::string::npos ||
               line.text.find(" -C") != std::string::npos ||
               line.text.find(" --global-option") != std::string::npos ||
               line.text.find(" --build-option") != std::string::npos ||
               line.text.find(" --install-option") != std::string::npos;
    });
}

/// Why this resolution cannot be linked; may be empty.
std::string obstacle_in(const Resolution& resolution, const spec::Requirements& requirements) {
    for (const auto& one : resolution.packages) {
        if (must_be_built(one) && has_build_options(requirements))
            return "the requirements have options for the build of a package";
        if (one.url.starts_with("file:") && !quiet::exists(file_url_path(one.url)))
            return file_url_path(one.url) + " cannot be reached from outside of the base";
    }
    return {};
}

conda::PackageRecord record_of(const ResolvedPackage& package) {
    conda::PackageRecord record;
    record.name = package.name;
    record.version = package.version;
    record.file_name = pip::file_name_in(package.url);
    record.url = record.download_url = package.url;
    record.sha256 = package.sha256;
    record.size = package.size;
    return record;
}

} // namespace

/// What is known before pip or uv is run; may be empty.
std::string Installers::obstacle_to_linking(const spec::Requirements& requirements) {
    const bool by_uv = choice_.installer == pip::Installer::uv;
    if (!requirements.editable.empty()) return "'" + requirements.editable.front() + "' is editable";
    if (is_old_pip()) return "this pip is older than 22.2";
    if (const auto kind = wishes_in(requirements).unknown_hash; !kind.empty())
        return "the requirements have checksums of the kind " + kind;
    auto environment = target_.environment;
    for (const auto& [variable, value] : choice_.for_uv)
        environment.insert_or_assign(variable, value);
    auto downloads =
        pip::download_settings(pip::settings_of_install(configuration_), requirements, environment, by_uv);
    http_ = std::move(downloads.http);
    return std::move(downloads.obstacle);
}

Result<Resolution> Installers::resolve(const RequirementsToInstall& requirements, Stage& stage, From from,
                                       Uv which) {
    TRY(begin(requirements.read, which));
    auto resolution = resolve_by_choice(requirements, stage, from);
    const bool by_pinned_uv = choice_.installer == pip::Installer::uv && !uv();
    if (!by_pinned_uv || interrupted() || (resolution && resolution->obstacle.empty())) return resolution;
    // Nobody asked for uv. pip knows more logins and accepts more pre-releases; otherwise it says what is
    // wrong.
    log::detail("pip resolves the requirements again, because " +
                (resolution ? resolution->obstacle : to_string(resolution.error())));
    TRY(begin(requirements.read, Uv::of_user));
    return resolve_by_choice(requirements, stage, from);
}

Result<Resolution> Installers::resolve_by_choice(const RequirementsToInstall& requirements, Stage& stage,
                                                 From from) {
    if (auto obstacle = obstacle_to_linking(requirements.read); !obstacle.empty())
        return Resolution{.obstacle = std::move(obstacle)};
    auto request = TRY(request_for(requirements));
    request.dry_run = true;
    request.reinstall = from == From::nothing;
    std::vector<pip::Planned> planned;
    TRY(run(requirements, request, [&](std::string_view line) {
        stage.detail(line);
        if (auto one = pip::planned_by_uv(line)) planned.push_back(std::move(*one));
    }));
    auto resolution = choice_.installer == pip::Installer::uv
                          ? TRY(resolve_by_uv(requirements, request, planned))
                          : TRY(pip::read_report(report(), wishes_in(requirements.read).permitted));
    if (resolution.obstacle.empty()) resolution.obstacle = obstacle_in(resolution, requirements.read);
    if (resolution.obstacle.empty()) resolution.obstacle = obstacle_to_building(resolution);
    if (!resolution.obstacle.empty()) return resolution;
    if (const auto& names = requirements.requested)
        for (auto& one : resolution.packages)
            one.requested =
                one.requested && std::ranges::find(*names, pip::normalised_name(one.name)) != names->end();
    announce(requirements);
    context_.record["installer"] = name();
    git_logins_ = git_logins(requirements.read);
    index_logins_ = index_logins(requirements.read);
    options_ = lasting_options(requirements.read, requirements.directory);
    for (auto& option : options_)
        option = pip::without_index_logins(option, index_logins_);
    return resolution;
}

/// Asks uv where the files are that it would install.
Result<Resolution> Installers::resolve_by_uv(const RequirementsToInstall& requirements,
                                             const pip::InstallRequest& request,
                                             const std::vector<pip::Planned>& planned) const {
    // Where the user's files for uv name another place, it has compared the requirements with that.
    if (uv())
        TRY(check_place({}, planned.empty() ? requirements.read : spec::Requirements(),
                        requirements.directory));
    if (planned.empty()) return Resolution();
    std::string pins;
    for (const auto& option : lasting_options(requirements.read, requirements.directory))
        pins += option + "\n";
    for (const auto& one : planned)
        pins += one.pin() + "\n";
    // uv hides logins in what it tells, and in a pin they would be wrong.
    if (pins.find(redaction_mark) != std::string::npos || pins.find("****") != std::string::npos)
        return Resolution{.obstacle = "a requirement's URL has a login"};
    return locked_by_uv(request.target, pins, planned, requirements.read);
}

/// Makes uv lock requirements, and chooses the files that it would install. `requirements` may name some of
/// them.
Result<Resolution> Installers::locked_by_uv(const pip::Target& target, const std::string& pins,
                                            const std::vector<pip::Planned>& planned,
                                            const spec::Requirements& requirements) const {
    const auto facts = TRY(pip::ask_interpreter(context_.inside({context_.python().string()})));
    if (facts.implementation != "cpython")
        return Resolution{.obstacle = "the interpreter is " + facts.implementation};
    const auto file = context_.staging / "uv-plan.txt";
    TRY(write_file(file, pins));
    auto unconstrained = target;
    unconstrained.environment.erase("UV_CONSTRAINT");
    const auto lock = TRY(pip::lock_by_uv(choice_, unconstrained, file));
    const pip::TagOrder tags(pip::tags_of(facts));
    auto wishes = wishes_in(requirements);
    return pip::read_lock_of_uv({.text = lock,
                                 .directory = file.parent_path(),
                                 .planned = planned,
                                 .tags = tags,
                                 .requested = std::move(wishes.requested),
                                 .permitted = std::move(wishes.permitted)});
}

Result<std::vector<ResolvedPackage>> Installers::files(const std::vector<pip::Planned>& installed,
                                                       const std::vector<std::string>& options) const {
    std::string pins;
    for (const auto& option : options)
        pins += option + "\n";
    for (const auto& one : installed)
        pins += one.pin() + "\n";
    auto locked = locked_by_uv(target_, pins, installed, {});
    if (locked && locked->obstacle.empty()) return std::move(locked->packages);
    return fail({.what = "uv could not determine the checksums of the installed packages",
                 .why = locked ? locked->obstacle : what_and_why(locked.error())});
}

Result<std::vector<OpenFile>> Installers::fetch_wheels(std::vector<ResolvedPackage>& packages) {
    std::vector<conda::PackageRecord> records;
    for (const auto& one : packages)
        if (!must_be_built(one)) records.push_back(record_of(one));
    conda::Config config;
    config.http = http_;
    const auto cache = TRY(conda::cache_directory(context_.inputs.environment, context_.options.site.cache));
    auto fetched = TRY(conda::fetch_packages(records, {}, config,
                                             {.cache = cache,
                                              .wheels = true,
                                              .offline = target_.offline,
                                              .umask_bits = context_.options.umask_bits}));
    TRY(build_all(packages));
    std::vector<OpenFile> wheels;
    auto next = fetched.begin();
    for (const auto& one : packages)
        wheels.push_back(must_be_built(one) ? TRY(OpenFile::open(file_url_path(one.url)))
                                            : std::move(*next++));
    return wheels;
}

/// Builds what must be built, and notes the wheels.
Status Installers::build_all(std::vector<ResolvedPackage>& packages) {
    const auto count = std::ranges::count_if(packages, must_be_built);
    if (count == 0) return {};
    Stage stage("Building wheels");
    for (std::size_t at = 0; at < packages.size(); ++at) {
        auto& one = packages[at];
        if (!must_be_built(one)) continue;
        const fs::path wheel = TRY(build(one, at, stage));
        one.url = file_url(wheel.string());
        one.sha256 = TRY(sha256_of_file(wheel));
        one.size = fs::file_size(wheel);
    }
    stage.finish(counted(static_cast<std::uint64_t>(count), "package"));
    return {};
}

/// pip builds, also for uv, whose own variables may name the indexes that have the build's requirements.
std::string Installers::obstacle_to_building(const Resolution& resolution) const {
    const auto one = std::ranges::find_if(resolution.packages, must_be_built);
    if (choice_.installer == pip::Installer::pip || one == resolution.packages.end()) return {};
    const bool has_settings = std::ranges::any_of(context_.environment, [](const auto& variable) {
        return variable.first.starts_with("UV_") && variable.first != "UV_LINK_MODE" &&
               variable.first != "UV_CACHE_DIR";
    });
    // An older pip would take newer packages for the build.
    const bool keeps_limit = knows_times_ || !context_.options.exclude_newer;
    return has_pip_ && keeps_limit && !has_settings ? "" : one->name + " must be built by uv";
}

/// Returns the path of the wheel.
Result<std::string> Installers::build(const ResolvedPackage& package, std::size_t number,
                                      Stage& stage) const {
    const auto directory = context_.staging / "built" / std::to_string(number);
    TRY(make_directories(directory));
    std::string text;
    for (const auto& option : options_)
        text += option + "\n";
    const auto file = directory / "requirement.txt";
    TRY(write_file(file, text + package.requirement() + "\n"));
    auto target = target_;
    // `pip wheel` would not read the sections for `pip install`.
    const auto settings = pip::settings_of_install(configuration_);
    pip::pass_without_misdirecting(settings, target.environment);
    limit_age(target.environment); // the user's settings may have another limit
    // Without the package `wheel`, `pip install` of pip before 23.1 can use an old setup.py, `pip wheel`
    // cannot.
    if (std::ranges::none_of(settings,
                             [](const pip::Setting& one) { return one.name.ends_with("use-pep517"); }))
        target.environment["PIP_USE_PEP517"] = "1";
    pip::hand_to_git(git_logins_, target.environment);
    TRY(hand_to_pip(index_logins_, target.environment));
    auto built =
        pip::build_by_pip(target, file, directory, [&stage](std::string_view line) { stage.detail(line); });
    std::error_code ignored;
    fs::remove(netrc_file(), ignored);
    if (!built) {
        built.error().where = package.name;
        return fail(std::move(built.error()));
    }
    return built->string();
}

} // namespace containerize::environments

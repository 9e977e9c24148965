#include "environments/pip_part.h"

#include "core/filesystem.h"
#include "core/text.h"
#include "environments/lock_check.h"
#include "environments/written_requirements.h"
#include "util/log.h"

#include <algorithm>
#include <utility>

namespace containerize::environments {

namespace {

std::vector<std::string> texts_of(const std::vector<Located>& lines) {
    std::vector<std::string> texts;
    for (const auto& line : lines)
        texts.push_back(line.text);
    return texts;
}

} // namespace

Status PipPart::check_python(const std::string& python_name) const {
    if (!python_name.empty()) return {};
    return fail_input("the environment has no Python for its pip packages", {}, context_.inputs.spec.string(),
                      "Add `- python` and `- pip` to the dependencies.");
}

Status PipPart::add_uv(const std::string& python_name) {
    if (!context_.options.uv || python_name.empty()) return {};
    // uv's cache is usually on another filesystem, where hard links fail with a warning, also in users'
    // scripts.
    context_.environment.emplace("UV_LINK_MODE", "copy");
    if (quiet::exists(context_.root() / "bin/uv")) return {};
    const fs::path file = context_.staging / "uv-requirement.txt";
    TRY(write_file(file, "uv\n"));
    auto read = TRY(spec::read_requirements(file, context_.staging));
    auto installed = install_file(file, read, context_.staging, python_name);
    if (!installed) installed.error().where = "--uv";
    return installed;
}

Status PipPart::install(const std::vector<Located>& lines, const std::string& python_name) {
    const fs::path file = context_.staging / "pip-requirements.txt";
    const fs::path directory = context_.inputs.spec.parent_path();
    auto read = TRY(write_requirements(file, lines, context_.inputs.spec));
    auto installed = install_file(file, read, directory, python_name);
    if (!installed) installed.error().where = context_.inputs.spec.string();
    return installed;
}

Status PipPart::install_file(const fs::path& file, const spec::Requirements& read, const fs::path& directory,
                             const std::string& python_name) {
    TRY(check_python(python_name));
    if (read.converted) return install_converted(read, python_name);
    Stage stage(pip_stage);
    auto contents = TRY(read_contents(context_.root(), python_name));
    const auto constraints = TRY(constraints_for(contents));
    TRY(install_all({{.file = file, .read = read, .directory = directory, .constraints = constraints}},
                    python_name, stage));
    stage.finish("with " + installers_.name());
    // The constraints fix only versions: a package of the same version may come from elsewhere.
    if (!locked_.empty()) {
        contents = TRY(read_contents(context_.root(), python_name));
        TRY(check_unchanged(locked_, contents, file.string()));
    }
    return note(installers_, read, directory, python_name);
}

Result<fs::path> PipPart::constraints_for(const CondaContents& contents) const {
    auto fixed = pip_list(locked_);
    // In a venv, too, pip may replace itself and setuptools.
    if (context_.options.conda.constraints && !only_python_is_requested(contents))
        fixed += pip_list(contents.of_conda);
    if (fixed.empty()) return fs::path();
    auto constraints = context_.staging / "constraints.txt";
    TRY(write_file(constraints, fixed));
    return constraints;
}

Result<pip::Resolution> PipPart::plan_file(const fs::path& file, const spec::Requirements& read,
                                           const fs::path& directory, const std::string& python_name) {
    TRY(check_python(python_name));
    Stage stage("Resolving pip packages");
    const auto version = TRY(installers_.version_of_python());
    TRY(check_version_of_python(read, version));
    const auto contents = TRY(read_contents(context_.root(), python_name));
    const auto constraints = TRY(constraints_for(contents));
    auto files = TRY(requirements_to_install(file, read, directory, context_.staging));
    for (auto& one : files)
        if (!one.verified) one.constraints = constraints;
    // As install() would.
    const auto which = link_ ? Installers::Uv::or_pinned : Installers::Uv::of_user;
    auto all = TRY(resolve_each(installers_, files, stage, From::what_is_installed, which));
    stage.finish("with " + installers_.name());
    return all;
}

Result<pip::Resolution> PipPart::plan(const std::vector<Located>& lines, const std::string& python_name) {
    const fs::path file = context_.staging / "pip-requirements.txt";
    const auto read = TRY(write_requirements(file, lines, context_.inputs.spec));
    auto planned = plan_file(file, read, context_.inputs.spec.parent_path(), python_name);
    if (!planned) planned.error().where = context_.inputs.spec.string();
    return planned;
}

Status PipPart::install_converted(const spec::Requirements& read, const std::string& python_name) {
    const auto& converted = *read.converted;
    const auto version = TRY(installers_.version_of_python());
    TRY(check_version_of_python(read, version));
    if (!converted.complete) return install(converted.lines, python_name);
    const auto contents = TRY(read_contents(context_.root(), python_name));
    // uv accepts no constraints where checksums are required.
    if (context_.options.conda.constraints && !contents.of_conda.empty() &&
        !only_python_is_requested(contents))
        return fail_input("this lock may replace packages from conda", {}, context_.inputs.spec.string(),
                          "Permit that with --no-constraints, or create a new installation.");
    const auto files =
        TRY(write_lines_of_lock(converted.lines, false, context_.inputs.spec, context_.staging));
    TRY(install_files_of_lock(files, python_name));
    known_.checksums.merge(checksums_in_lines(texts_of(converted.lines)));
    return note(installers_, read, context_.inputs.spec.parent_path(), python_name);
}

void PipPart::remember(const pip::Pylock& earlier) {
    add_index_files(earlier.packages, known_.files);
    of_venv_ = earlier.of_venv;
    for (const auto& option : earlier.options)
        add_option(option);
}

void PipPart::remember_venv(const std::vector<pip::Distribution>& installed) {
    for (const auto& one : installed)
        of_venv_.push_back(pin_of(one));
}

Status PipPart::install_locked(const std::string& python_name, Present present) {
    const auto& locked = *context_.inputs.locked;
    remember(locked);
    auto contents = TRY(read_contents(context_.root(), python_name));
    auto before = std::move(contents.of_pip);
    if (present == Present::goes && locked.of_pip)
        std::erase_if(before, [&](const auto& one) { return !context_.options.uv || one.name != "uv"; });
    if (!locked.pip.empty()) {
        TRY(check_python(python_name));
        // A lock lists all packages, dependencies included, except older locks without `of_pip`.
        auto files =
            TRY(write_lines_of_lock(locked.pip, !locked.of_pip, context_.inputs.spec, context_.staging));
        for (auto& one : files)
            one.requested = locked.pip_requested;
        TRY(install_files_of_lock(files, python_name));
    }
    contents = TRY(read_contents(context_.root(), python_name));
    TRY(check_against_lock(locked, contents, before, context_.inputs.spec.string()));
    TRY(forget_requests(contents.of_pip, python_name));
    locked_ = std::move(contents.of_pip);
    return {};
}

Status PipPart::install_files_of_lock(const std::vector<RequirementsToInstall>& files,
                                      const std::string& python_name) {
    Stage stage(pip_stage);
    if (!files.empty() && files.front().dependencies) {
        for (const auto& one : files)
            TRY(install_all({one}, python_name, stage));
    } else {
        TRY(install_all(files, python_name, stage));
    }
    stage.finish("with " + installers_.name());
    return {};
}

Status PipPart::install_all(const std::vector<RequirementsToInstall>& files, const std::string& python_name,
                            Stage& stage) {
    if (link_) {
        const auto obstacle = TRY(link(files, python_name, stage));
        if (obstacle.empty()) return {};
        log::detail("pip packages are installed into a tree, because " + obstacle);
    }
    for (const auto& one : files)
        TRY(installers_.install(one, stage));
    return {};
}

/// Returns an obstacle, or nothing if the packages are linked.
Result<std::string> PipPart::link(const std::vector<RequirementsToInstall>& files,
                                  const std::string& python_name, Stage& stage) {
    if (context_.options.installer == pip::Installer::pip_tree) return "--installer pip-tree asks for it";
    PipWheels wheels(context_, installers_);
    if (auto obstacle = TRY(wheels.resolve(files, stage)); !obstacle.empty()) return obstacle;
    if (wheels.packages().empty()) return std::string();
    const auto site_packages = context_.root() / "lib" / python_name / "site-packages";
    if (auto obstacle = wheels.obstacle_in(site_packages, nullptr); !obstacle.empty()) return obstacle;
    auto obstacle = TRY(link_(wheels, stage));
    if (obstacle.empty()) add_index_files(wheels.packages(), known_.files);
    return obstacle;
}

// pip compares only versions: it would keep a package of the same version with another origin or checksum.
Status PipPart::remove_what_differs(const std::string& python_name, const spec::LockedEnvironment& present) {
    if (!context_.inputs.locked->of_pip) return {};
    const auto contents = TRY(read_contents(context_.root(), python_name));
    const auto& wanted = context_.inputs.locked->pip;
    const auto known = checksums_in_lines(texts_of(present.pip));
    std::vector<std::string> names;
    for (const auto& one : contents.of_pip)
        if (std::ranges::none_of(wanted,
                                 [&](const Located& line) { return fits_line(one, line.text, known); }))
            names.push_back(one.name);
    if (names.empty()) return {};
    Stage stage("Removing pip packages");
    // Not installers_: conda packages are changed after this and may add or remove pip.
    TRY(Installers(context_).uninstall(names, stage));
    stage.finish(human_count(names.size()) + " packages");
    return {};
}

// pip marks every package of a lock as REQUESTED, so the image would differ from the original.
Status PipPart::forget_requests(const std::vector<pip::Distribution>& installed,
                                const std::string& python_name) const {
    if (!context_.inputs.locked->pip_requested) return {};
    const auto& requested = *context_.inputs.locked->pip_requested;
    const auto site_packages = context_.root() / "lib" / python_name / "site-packages";
    for (const auto& one : installed) {
        if (!one.requested || std::ranges::find(requested, pip::normalised_name(one.name)) != requested.end())
            continue;
        const auto directory = fs::path(one.metadata).parent_path();
        auto record = TRY(read_file(site_packages / directory / "RECORD"));
        const std::string line = (directory / "REQUESTED").string() + ",";
        if (const auto at = record.find(line); at != std::string::npos)
            record.erase(at, std::min(record.find('\n', at), record.size() - 1) - at + 1);
        std::error_code failed;
        fs::remove(site_packages / directory / "REQUESTED", failed);
        TRY(write_file(site_packages / directory / "RECORD", record));
    }
    return {};
}

void PipPart::remember(const spec::LockedEnvironment& earlier) {
    const auto lines = texts_of(earlier.pip);
    known_.checksums.merge(checksums_in_lines(lines));
    if (earlier.of_pip) add_index_files(*earlier.of_pip, known_.files);
    for (const auto& line : lines)
        if (is_option(line)) add_option(line);
}

void PipPart::add_option(std::string option) {
    if (std::ranges::find(known_.options, option) == known_.options.end())
        known_.options.push_back(std::move(option));
}

void PipPart::remember(const spec::Requirements& requirements, const fs::path& directory,
                       const std::vector<pip::ResolvedPackage>& resolved) {
    for (auto& option : lasting_options(requirements, directory))
        add_option(std::move(option));
    add_index_files(resolved, known_.files);
}

Status PipPart::note(const Installers& installers, const spec::Requirements& requirements,
                     const fs::path& directory, const std::string& python_name) {
    remember(requirements, directory, {});
    const auto report = installers.report();
    for (auto& [pin, checksum] : checksums_in_report(report))
        known_.checksums[pin] = std::move(checksum);
    if (const auto reported = pip::read_report(report)) add_index_files(reported->packages, known_.files);
    if (installers.is_old_pip() && !std::exchange(warned_of_old_pip_, true))
        log::warn(
            "This environment's pip is older than 22.2 and does not report checksums. The lock file contains "
            "versions, but no checksums. Request pip>=22.2, or install with uv.");
    if (installers.name() == "uv") TRY(ask_uv(installers, python_name));
    return {};
}

bool PipPart::is_known(const std::string& pin) const {
    return known_.checksums.contains(pin) || known_.files.contains(pin) ||
           std::ranges::find(of_venv_, pin) != of_venv_.end();
}

/// Asks uv for the files of what it has installed.
Status PipPart::ask_uv(const Installers& installers, const std::string& python_name) {
    const auto contents = TRY(read_contents(context_.root(), python_name));
    std::vector<pip::Planned> installed;
    for (const auto& one : contents.of_pip)
        if (!one.origin && !is_known(pin_of(one)))
            installed.push_back({.name = one.name, .version = one.version});
    if (installed.empty()) return {};
    const auto answer = installers.files(installed, known_.options);
    if (!answer) {
        log::warn(answer.error().what + ". The lock file contains their versions, but no checksums.");
        log::detail(answer.error().why);
        return {};
    }
    add_index_files(*answer, known_.files);
    return {};
}

void PipPart::lock(const std::vector<pip::Distribution>& installed, spec::LockedEnvironment& locked) const {
    lock_requirements(installed, known_, locked);
}

Result<prefix::LockFile> PipPart::pylock(const std::vector<pip::Distribution>& installed) const {
    return lock_file(pylock_of(installed, known_, of_venv_), context_);
}

} // namespace containerize::environments

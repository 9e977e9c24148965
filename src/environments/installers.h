// Runs pip and uv during a build.
#pragma once

#include "core/error.h"
#include "core/open_file.h"
#include "environments/environment_builder.h"
#include "pip/download_settings.h"
#include "pip/git_logins.h"
#include "pip/index_logins.h"
#include "pip/installer.h"
#include "pip/resolution.h"
#include "spec/requirements.h"
#include "util/progress.h"

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace containerize::environments {

/// The build stage in which pip or uv installs packages.
inline constexpr const char* pip_stage = "Installing pip packages";

struct RequirementsToInstall {
    std::filesystem::path file;
    spec::Requirements read;                ///< the parsed `file`
    std::filesystem::path directory;        ///< local paths in the file are relative to it
    std::filesystem::path input = {};       ///< the user's file, if `file` was made from that
    std::filesystem::path constraints = {}; ///< like the members of pip::InstallRequest
    bool dependencies = true, verified = false;
    /// The packages (by normalised names) that the user asked for, if the file lists others, too.
    std::optional<std::vector<std::string>> requested = {};
};

class Installers {
public:
    explicit Installers(BuildContext& context) : context_(context) {}

    /// Which uv may be used.
    enum class Uv { of_user, or_pinned };

    /// Installs requirements into the environment at the prefix.
    Status install(const RequirementsToInstall& requirements, Stage& stage);

    /// Decides what install() would install, and changes nothing. If the resolution has an obstacle, only
    /// install() can be used.
    Result<pip::Resolution> resolve(const RequirementsToInstall& requirements, Stage& stage, From from,
                                    Uv which);

    /// Returns the wheels of `packages`, in their order: downloads those that the cache lacks, and builds
    /// those that must be built, whose url, sha256 and size it fills in. Verifies size and sha256 through the
    /// returned descriptor, so only that one may be read. Call it after the resolve() that returned them.
    Result<std::vector<OpenFile>> fetch_wheels(std::vector<pip::ResolvedPackage>& packages);

    Status uninstall(const std::vector<std::string>& names, Stage& stage);

    /// pip's report on the last install() or resolve(); empty if there is none, as with uv or an old pip.
    [[nodiscard]] std::string report() const;

    /// Whether the last install() was by a pip that is too old to report.
    [[nodiscard]] bool is_old_pip() const { return name() == "pip" && !writes_report_; }

    /// The files of packages from indexes, after an install() by uv. `options` are lines of a requirements
    /// file.
    [[nodiscard]] Result<std::vector<pip::ResolvedPackage>>
    files(const std::vector<pip::Planned>& installed, const std::vector<std::string>& options) const;

    /// "pip" or "uv": what the last install() used.
    [[nodiscard]] std::string name() const;

    /// The version of the environment's Python: "3.11.2".
    [[nodiscard]] Result<std::string> version_of_python() const;

private:
    Status prepare();
    Status begin(const spec::Requirements& requirements, Uv which);
    void announce(const RequirementsToInstall& requirements);
    Status run(const RequirementsToInstall& requirements, const pip::InstallRequest& request,
               const pip::Detail& detail) const;
    [[nodiscard]] std::string obstacle_to_linking(const spec::Requirements& requirements);
    [[nodiscard]] std::string obstacle_to_building(const pip::Resolution& resolution) const;
    Result<pip::Resolution> resolve_by_choice(const RequirementsToInstall& requirements, Stage& stage,
                                              From from);
    Result<pip::Resolution> resolve_by_uv(const RequirementsToInstall& requirements,
                                          const pip::InstallRequest& request,
                                          const std::vector<pip::Planned>& planned) const;
    [[nodiscard]] Result<pip::Resolution> locked_by_uv(const pip::Target& target, const std::string& pins,
                                                       const std::vector<pip::Planned>& planned,
                                                       const spec::Requirements& requirements) const;
    Result<std::string> build(const pip::ResolvedPackage& package, std::size_t number, Stage& stage) const;
    Status build_all(std::vector<pip::ResolvedPackage>& packages);
    Result<std::string> version_of_pip();
    void set_defaults();
    Result<std::filesystem::path> place_pip();
    [[nodiscard]] std::optional<std::filesystem::path> uv() const;
    Status choose(const spec::Requirements& requirements, Uv which);
    Result<pip::Choice> choice_of(const std::optional<std::filesystem::path>& uv,
                                  const spec::Requirements& requirements) const;
    std::optional<pip::Choice> choice_of_pinned_uv(const spec::Requirements& requirements) const;
    Status exclude_newer();
    void limit_age(Environment& environment) const;
    Result<pip::InstallRequest> request_for(const RequirementsToInstall& requirements);
    [[nodiscard]] Status check_place(const std::vector<pip::NamedVersion>& told,
                                     const spec::Requirements& requirements,
                                     const std::filesystem::path& directory) const;
    [[nodiscard]] bool git_takes_settings() const;
    [[nodiscard]] pip::IndexLogins index_logins(const spec::Requirements& requirements) const;
    [[nodiscard]] std::vector<pip::GitLogin> git_logins(const spec::Requirements& requirements) const;
    Status hand_to_pip(const pip::IndexLogins& logins, Environment& environment) const;
    [[nodiscard]] std::string netrc_of_user() const;
    [[nodiscard]] std::filesystem::path netrc_file() const;
    [[nodiscard]] std::filesystem::path report_file() const;

    BuildContext& context_;
    pip::Target target_;
    bool prepared_ = false, has_pip_ = false, writes_report_ = false, knows_times_ = false;
    std::string configuration_; ///< output of `pip config list`
    pip::Choice choice_;
    std::set<std::filesystem::path> announced_; ///< files whose warnings were shown
    // What fetch_wheels() needs from the last resolve():
    http::Settings http_;
    std::vector<std::string> options_; ///< of the requirements files, without logins
    std::vector<pip::GitLogin> git_logins_;
    pip::IndexLogins index_logins_;
};

} // namespace containerize::environments

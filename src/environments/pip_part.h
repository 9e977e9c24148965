// Installs pip packages, on top of conda's, from an environment file, a lock or an update.
#pragma once

#include "core/error.h"
#include "environments/conda_contents.h"
#include "environments/environment_builder.h"
#include "environments/installers.h"
#include "environments/pip_lock.h"
#include "environments/pip_wheels.h"
#include "spec/conda_environment.h"

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace containerize::environments {

class PipPart {
public:
    /// Fetches wheels that were resolved, and links them into the image below the prefix. Returns why that is
    /// not possible, to follow "because"; empty if it is done.
    using Link = std::function<Result<std::string>(PipWheels& wheels, Stage& stage)>;

    /// Without `link`, pip or uv itself installs all packages.
    explicit PipPart(BuildContext& context, Link link = {})
        : context_(context), installers_(context), link_(std::move(link)) {}

    /// Installs uv if the options ask for it and nothing else has installed it. Does nothing without Python.
    Status add_uv(const std::string& python_name);

    /// Installs requirement lines of an environment file. `python_name` is that of EnvironmentBuilder.
    Status install(const std::vector<Located>& lines, const std::string& python_name);

    /// Installs a requirements file, in which paths are relative to `directory`, or what a file of another
    /// tool was converted to.
    Status install_file(const std::filesystem::path& file, const spec::Requirements& read,
                        const std::filesystem::path& directory, const std::string& python_name);

    /// What install_file() would install. Changes nothing.
    Result<pip::Resolution> plan_file(const std::filesystem::path& file, const spec::Requirements& read,
                                      const std::filesystem::path& directory, const std::string& python_name);
    /// What install() would install. Changes nothing.
    Result<pip::Resolution> plan(const std::vector<Located>& lines, const std::string& python_name);

    /// Uninstalls pip packages that differ from the lock, if the lock lists pip packages. Call it before
    /// conda packages are changed: pip deletes files by path, whoever owns them by then. `present` is the
    /// lock of the existing installation, with its checksums.
    Status remove_what_differs(const std::string& python_name, const spec::LockedEnvironment& present);

    enum class Present { stays, goes };
    /// Installs the lock's pip packages and fails if the environment then differs from the lock. `present`:
    /// whether existing pip packages that the lock lacks may stay, such as those that conda packages' scripts
    /// installed.
    Status install_locked(const std::string& python_name, Present present);

    /// Takes over options and checksums from an earlier lock.
    void remember(const spec::LockedEnvironment& earlier);
    void remember(const pip::Pylock& earlier);

    /// Takes note of the packages that Python brought to a new venv.
    void remember_venv(const std::vector<pip::Distribution>& installed);
    /// Takes over what is known of packages before they are installed.
    void remember(const spec::Requirements& requirements, const std::filesystem::path& directory,
                  const std::vector<pip::ResolvedPackage>& resolved);

    /// Collects what a lock needs beyond what the installed files tell, after an install() by `installers`:
    /// options, addresses and checksums.
    Status note(const Installers& installers, const spec::Requirements& requirements,
                const std::filesystem::path& directory, const std::string& python_name);

    /// Fills in pip's part of a lock.
    void lock(const std::vector<pip::Distribution>& installed, spec::LockedEnvironment& locked) const;
    /// The lock of an environment with pip packages only, as pylock_of() makes it.
    [[nodiscard]] Result<prefix::LockFile> pylock(const std::vector<pip::Distribution>& installed) const;

private:
    Status check_python(const std::string& python_name) const;
    /// The file that keeps pip from changing what is installed already; empty if nothing is kept.
    Result<std::filesystem::path> constraints_for(const CondaContents& contents) const;
    /// Links the packages, or lets pip or uv install them.
    Status install_all(const std::vector<RequirementsToInstall>& files, const std::string& python_name,
                       Stage& stage);
    Result<std::string> link(const std::vector<RequirementsToInstall>& files, const std::string& python_name,
                             Stage& stage);
    Status install_converted(const spec::Requirements& read, const std::string& python_name);
    Status install_files_of_lock(const std::vector<RequirementsToInstall>& files,
                                 const std::string& python_name);
    Status forget_requests(const std::vector<pip::Distribution>& installed,
                           const std::string& python_name) const;
    Status ask_uv(const Installers& installers, const std::string& python_name);
    void add_option(std::string option);
    [[nodiscard]] bool is_known(const std::string& pin) const;

    BuildContext& context_;
    Installers installers_;
    Link link_;
    KnownOfPip known_;
    std::vector<std::string> of_venv_; ///< pins
    bool warned_of_old_pip_ = false;
    std::vector<pip::Distribution> locked_; ///< what the lock has brought, and no requirement may change
};

} // namespace containerize::environments

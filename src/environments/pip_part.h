// Installs pip packages, on top of conda's, from an environment file, a lock or an update.
#pragma once

#include "core/error.h"
#include "environments/conda_contents.h"
#include "environments/environment_builder.h"
#include "environments/installers.h"
#include "environments/pip_lock.h"
#include "spec/conda_environment.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::environments {

class PipPart {
public:
    explicit PipPart(BuildContext& context) : context_(context), installers_(context) {}

    /// Installs uv if the options ask for it and nothing else has installed it. Does nothing without Python.
    Status add_uv(const std::string& python_name);

    /// Installs requirement lines of an environment file. `python_name` is that of EnvironmentBuilder.
    Status install(const std::vector<Located>& lines, const std::string& python_name);

    /// Installs a requirements file, in which paths are relative to `directory`, or what a file of another
    /// tool was converted to.
    Status install_file(const std::filesystem::path& file, const spec::Requirements& read,
                        const std::filesystem::path& directory, const std::string& python_name);

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
    Status install_converted(const spec::Requirements& read, const std::string& python_name);
    /// Installs lines of a lock. Without `dependencies`, they list all packages.
    Status install_lines_of_lock(const std::vector<Located>& lines, bool dependencies);
    Status forget_requests(const std::vector<pip::Distribution>& installed,
                           const std::string& python_name) const;
    Status ask_uv(const Installers& installers, const std::string& python_name);
    void add_option(std::string option);
    [[nodiscard]] bool is_known(const std::string& pin) const;

    BuildContext& context_;
    Installers installers_;
    KnownOfPip known_;
    std::vector<std::string> of_venv_; ///< pins
    bool warned_of_old_pip_ = false;
    std::vector<pip::Distribution> locked_; ///< what the lock has brought, and no requirement may change
};

} // namespace containerize::environments

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

    /// Fills in pip's part of a lock.
    void lock(const std::vector<pip::Distribution>& installed, spec::LockedEnvironment& locked) const;

private:
    Status check_python(const std::string& python_name) const;
    /// The file that keeps pip from changing what is installed already; empty if nothing is kept.
    Result<std::filesystem::path> constraints_for(const CondaContents& contents) const;
    Status install_converted(const spec::Requirements& read, const std::string& python_name);
    /// Installs lines of a lock. Without `dependencies`, they list all packages.
    Status install_lines_of_lock(const std::vector<Located>& lines, bool dependencies);
    Status forget_requests(const std::vector<pip::Distribution>& installed,
                           const std::string& python_name) const;
    Status note(const spec::Requirements& requirements, const std::filesystem::path& directory,
                const std::string& python_name);

    BuildContext& context_;
    Installers installers_;
    Checksums checksums_;
    std::vector<std::string> options_;
    bool warned_of_old_pip_ = false;
    std::vector<pip::Distribution> locked_; ///< what the lock has brought, and no requirement may change
};

} // namespace containerize::environments

// What pip installs beside conda's packages: of an environment file, of a lock, of an update.
#pragma once

#include "install/conda_contents.h"
#include "install/installers.h"
#include "install/pip_lock.h"
#include "install/recipe.h"
#include "spec/conda_environment.h"
#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::install {

class PipPart {
public:
    explicit PipPart(Workshop& shop) : shop_(shop), installers_(shop) {}

    /// uv, if it is asked for and nothing has brought it yet; without Python it has no use.
    Status add_uv(const std::string& python_name);

    /// Lines that stand in another file. `python_name` as Recipe has it.
    Status install(const std::vector<spec::Located>& lines, const std::string& python_name);

    /// A requirements file; paths in it are relative to `directory`.
    Status install_file(const std::filesystem::path& file, const spec::Requirements& read,
                        const std::filesystem::path& directory, const std::string& python_name);

    /// Of what pip installed, all that is not as the lock has it goes; if the lock can tell. Before packages
    /// of conda are changed: pip removes files by their names, whoever has put them there since. `present` is
    /// the lock of what is installed, which knows checksums of it.
    Status remove_what_differs(const std::string& python_name, const spec::LockedEnvironment& present);

    enum class Present { stays, goes };
    /// What the lock has; then compares all of it with what is there. What pip installed before and is not in
    /// the lock stays, if packages of conda bring it, or must be gone.
    Status install_locked(const std::string& python_name, Present present);

    /// Takes over what an earlier lock knows.
    void remember(const spec::LockedEnvironment& earlier);

    /// Writes pip's part of a lock.
    void lock(const std::vector<pip::Distribution>& installed, spec::LockedEnvironment& locked) const;

private:
    Status check_python(const std::string& python_name) const;
    Status install_lines_of_lock(Stage& stage);
    Status forget_requests(const std::vector<pip::Distribution>& installed,
                           const std::string& python_name) const;
    Status note(const spec::Requirements& requirements, const std::filesystem::path& directory,
                const std::string& python_name);

    Workshop& shop_;
    Installers installers_;
    Checksums checksums_;
    std::vector<std::string> options_;
};

} // namespace containerize::install

// How one kind of environment comes to be; build.cpp runs the steps in their order.
#pragma once

#include "image/writer.h"
#include "install/build.h"
#include "install/inputs.h"
#include "runtime/build_namespace.h"
#include "runtime/environment.h"
#include "runtime/manifest.h"
#include "util/error.h"
#include "util/process.h"
#include "util/progress.h"
#include "util/resources.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace containerize::install {

/// What all steps of a build share.
struct Workshop {
    const BuildOptions& options;
    const Inputs& inputs;
    std::filesystem::path prefix;
    std::filesystem::path staging; ///< node-local, gone after the build
    Resources resources;
    unsigned jobs;
    runtime::BuildNamespace space;                    ///< in which the environment stands at the prefix
    std::function<int()> join;                        ///< for commands that run there
    Environment environment;                          ///< of those commands
    nlohmann::json record = nlohmann::json::object(); ///< the manifest's "build": what was used
    bool log_has_reason = true; ///< false once something failed whose output went to the terminal alone

    /// The environment as it stands at the prefix, for this process.
    [[nodiscard]] std::filesystem::path root() const { return space.tree(); }
    [[nodiscard]] std::filesystem::path python() const { return prefix / "bin/python"; }
    [[nodiscard]] std::filesystem::path image() const { return staging / "env.sqfs"; }
    [[nodiscard]] Command inside(std::vector<std::string> argv) const;
    /// Runs a program that must succeed; its lines are shown as the stage's details. `what` is what failed
    /// then.
    Result<Outcome> run_inside(std::vector<std::string> argv, Stage& stage, const std::string& what) const;
    /// A user's script, in the user's working directory; the first command of it that fails ends it.
    Result<Outcome> run_hook(const std::filesystem::path& script, Stage& stage) const;
    [[nodiscard]] image::WriterOptions writer_options() const;

private:
    Result<Outcome> run_successfully(Command command, Stage& stage, const std::string& what) const;
};

class Recipe {
public:
    virtual ~Recipe() = default;

    /// Something at the prefix, and commands of the build that find it: what the pre-install script sees.
    virtual Status create() = 0;
    /// All that was asked for.
    virtual Status install() = 0;
    /// Byte-code for every module that has none.
    virtual Status compile() = 0;
    /// What activating the environment changes at each launch.
    virtual Result<std::vector<runtime::EnvironmentChange>> activation() = 0;
    /// Scripts of the environment that every launch must source, because what they do depends on the caller.
    virtual std::vector<std::string> launch_scripts() { return {}; }
    /// What every launch gets beside, whether it activates or not.
    virtual Result<std::vector<runtime::EnvironmentChange>> environment() { return {}; }
    /// One package a line.
    virtual Result<std::string> packages() = 0;
    /// Text of the lock file that gives this environment again; empty if there is none.
    virtual std::string lock() { return {}; }
    /// Of an update: whether anything differs from the state that it began with. Asked once, before pack().
    [[nodiscard]] virtual bool has_changes() { return true; }
    /// An image that is taken as it is: what pack() writes is a layer over it. Empty for none.
    [[nodiscard]] virtual std::filesystem::path image_below() const { return {}; }
    /// Writes Workshop::image(). `progress` gets bytes done and in all.
    virtual Result<image::WriteStats>
    pack(const std::function<void(std::uint64_t, std::uint64_t)>& progress) = 0;
    /// "python3.11": the directory of Python's library in "lib"; empty without Python.
    [[nodiscard]] virtual std::string python_name() const = 0;
};

std::unique_ptr<Recipe> make_pip_recipe(Workshop& shop);

/// Packages of conda channels, solved or as a lock has them, and what a `pip:` section lists.
std::unique_ptr<Recipe> make_conda_recipe(Workshop& shop);

/// A directory of software, as it is on disk.
std::unique_ptr<Recipe> make_wrap_recipe(Workshop& shop);

/// What tykky made, of which the image is taken over.
std::unique_ptr<Recipe> make_import_recipe(Workshop& shop);

/// Links to programs of the base: what `programs` (absolute) names, directories of them or single ones.
std::unique_ptr<Recipe> make_container_recipe(Workshop& shop);

struct UpdateRequest {
    std::vector<std::string> command; ///< to be run at the terminal; empty for none
    bool prune = false;               ///< packages of conda that the environment file does not need go
};
/// Changes of an installation that is there, whose images stand at the prefix with a writable layer over
/// them: what the input lists, and what the user's command does.
std::unique_ptr<Recipe> make_update_recipe(Workshop& shop, const runtime::Manifest& previous,
                                           const UpdateRequest& request);

/// What activating a venv at the prefix changes.
std::vector<runtime::EnvironmentChange> venv_activation();
/// And of software that is neither: its commands are found.
std::vector<runtime::EnvironmentChange> path_activation();

/// "python3.11", for which the packages of the environment at the prefix are; empty where no Python runs.
std::string name_of_python(const Workshop& shop);

} // namespace containerize::install

// The steps in which one kind of environment is made; build/steps.cpp runs them in order.
#pragma once

#include "conda/package_record.h"
#include "core/error.h"
#include "core/resources.h"
#include "environments/build_namespace.h"
#include "image/writer.h"
#include "inputs/build_options.h"
#include "inputs/inputs.h"
#include "launch/environment.h"
#include "manifest/manifest.h"
#include "pip/resolution.h"
#include "prefix/records.h"
#include "spec/conda_environment.h"
#include "util/process.h"
#include "util/progress.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace containerize::environments {

struct ImageCache;

/// State shared by all steps of a build.
struct BuildContext {
    const inputs::BuildOptions& options;
    const inputs::Inputs& inputs;
    std::filesystem::path prefix;
    std::filesystem::path staging; ///< node-local, removed after the build
    Resources resources;
    unsigned jobs;
    environments::BuildNamespace space;                   ///< has the environment mounted at the prefix
    std::function<int()> join;                            ///< makes a child process join `space`
    Environment environment;                              ///< for commands run in `space`
    nlohmann::json record = nlohmann::json::object();     ///< the manifest's "build" object: what was used
    mutable std::shared_ptr<ImageCache> image_cache = {}; ///< opened by the first step that needs it
    bool log_has_reason = true; ///< false if the output of what failed went to the terminal only

    /// The environment's tree, as this process can reach it.
    [[nodiscard]] std::filesystem::path root() const { return space.tree(); }
    [[nodiscard]] std::filesystem::path python() const { return prefix / "bin/python"; }
    [[nodiscard]] std::filesystem::path image() const { return staging / "env.sqfs"; }
    [[nodiscard]] Command inside(std::vector<std::string> argv) const;
    /// Runs a program, shows its lines as the stage's details, and fails with the message `what` if it fails.
    static Result<Outcome> run_successfully(Command command, Stage& stage, const std::string& what);
    /// Runs a user's script in the user's working directory, with `bash -e`.
    Result<Outcome> run_hook(const std::filesystem::path& script, Stage& stage) const;
    [[nodiscard]] image::WriterOptions writer_options() const;
    /// For what waits to be written while an image is made.
    [[nodiscard]] std::uint64_t memory_of_writer() const;
};

/// What each launch that activates the environment does.
struct Activation {
    std::vector<launch::EnvironmentChange> changes;
    /// Scripts to source, relative to the prefix, because their effect depends on the caller's environment.
    std::vector<std::string> scripts = {};
};

class EnvironmentBuilder {
public:
    virtual ~EnvironmentBuilder() = default;

    /// As create_environment() does it: makes a place at the prefix for the pre-install script: for pip a
    /// venv, for an update the present state.
    virtual Status create() = 0;
    /// Decides which packages to install.
    virtual Status solve() { return {}; }
    virtual Status fetch() { return {}; }
    /// Puts the packages at the prefix.
    virtual Status link() { return {}; }
    /// Runs the scripts that packages bring for this.
    virtual Status run_scripts() { return {}; }
    /// Installs what pip or uv installs.
    virtual Status install() { return {}; }
    /// A directory with all that the steps so far have written, at the paths that it has in the environment.
    [[nodiscard]] virtual std::filesystem::path written() const = 0;
    /// Compiles modules that have no byte-code.
    virtual Status compile() { return {}; }
    virtual Result<Activation> activation() = 0;
    /// Changes at every launch, whether it activates the environment or not.
    virtual Result<std::vector<launch::EnvironmentChange>> environment() { return {}; }
    /// The installed packages, one per line.
    virtual Result<std::string> packages() { return std::string(); }
    /// The lock file that reproduces this environment. Called after packages().
    virtual Result<prefix::LockFile> lock() { return {}; }
    /// In an update, whether anything has changed. Called once, right before pack().
    [[nodiscard]] virtual bool has_changes() { return true; }
    /// An image that is used unchanged, below the layer that pack() writes; empty for none.
    [[nodiscard]] virtual std::filesystem::path image_below() const { return {}; }
    /// Writes BuildContext::image(). `progress` gets the bytes done and the total, or 0 if that is unknown.
    using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;
    virtual Result<image::WriteStats> pack(const Progress& progress) = 0;
    /// The name of Python's directory in "lib", such as "python3.11"; empty without Python.
    [[nodiscard]] virtual std::string python_name() const { return {}; }
};

/// Calls create(), and tells the programs that the build will run where the environment is.
Status create_environment(EnvironmentBuilder& builder, BuildContext& context);

/// What a resolution starts from.
enum class From {
    what_is_installed, ///< which stays if it fits
    nothing            ///< as in an empty environment
};

std::unique_ptr<EnvironmentBuilder> make_pip_builder(BuildContext& context);
/// What such a build would install.
Result<pip::Resolution> plan_pip(BuildContext& context, From from);

/// For conda packages, solved or from a lock, and the `pip:` section.
std::unique_ptr<EnvironmentBuilder> make_conda_builder(BuildContext& context);
/// What such a build would install. For pip's part, conda's packages are linked, because pip asks the
/// environment's own Python.
struct CondaDryRun {
    std::vector<conda::PackageRecord> packages; ///< in link order
    pip::Resolution of_pip;
};
Result<CondaDryRun> plan_conda_and_pip(BuildContext& context);
/// The lock of what such a build would install. Installs it, because some packages tell only when they are
/// built which others they need.
Result<spec::LockedEnvironment> lock_conda_and_pip(BuildContext& context);

/// For a directory of software, packed as it is on disk.
std::unique_ptr<EnvironmentBuilder> make_wrap_builder(BuildContext& context);

/// For tykky's installations, whose image is taken over.
std::unique_ptr<EnvironmentBuilder> make_import_builder(BuildContext& context);

/// For programs of the base: links to those named, singly or by directory, in Inputs::programs.
std::unique_ptr<EnvironmentBuilder> make_container_builder(BuildContext& context);

struct UpdateRequest {
    std::vector<std::string> command; ///< run at the terminal; empty for none
    bool prune = false;               ///< remove conda packages that the environment file does not need
};
/// For updates: the installation's images are mounted at the prefix with a writable layer over them, which
/// receives what the input and the user's command change.
std::unique_ptr<EnvironmentBuilder>
make_update_builder(BuildContext& context, const manifest::Manifest& previous, const UpdateRequest& request);

/// A package that an update would add (no `before`), remove (no `after`), or replace.
struct PackageChange {
    struct Version {
        std::string version;
        std::string build = {}, channel = {}; ///< of conda packages
    };
    std::string name;
    bool of_pip = false;
    std::optional<Version> before = {}, after = {};
    std::uint64_t size = 0; ///< bytes of the file that is installed; 0 if unknown
};
struct UpdatePlan {
    std::vector<PackageChange> changes; ///< those of conda first, each sorted by name
    std::size_t unsolved = 0; ///< requirements for pip, which depend on packages that conda would change
};
/// What an update would change.
Result<UpdatePlan> plan_update(BuildContext& context, const manifest::Manifest& previous, bool prune);

/// For a venv at the prefix.
Activation venv_activation();
/// For other software: its commands are put on PATH.
Activation path_activation();

/// The name of Python's directory in "lib", such as "python3.11"; empty without Python.
Result<std::string> name_of_python(const BuildContext& context);

} // namespace containerize::environments

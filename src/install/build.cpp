#include "install/build.h"

#include "conda/package_cache.h"
#include "install/conda_plan.h"
#include "install/environ_script.h"
#include "install/inputs.h"
#include "install/janitor.h"
#include "install/prefix.h"
#include "install/publish.h"
#include "install/recipe.h"
#include "install/records.h"
#include "install/wrappers.h"
#include "runtime/manifest.h"
#include "runtime/namespace.h"
#include "util/filesystem.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/process.h"
#include "util/progress.h"
#include "util/resources.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::install {

namespace {

using runtime::Manifest;

/// The environment of all programs of a build. What they leave in their directory for temporary files goes
/// with the staging directory.
Environment build_environment(Environment environment, const fs::path& temporary) {
    environment["TMPDIR"] = temporary.string();
    return environment;
}

class Build {
public:
    Build(Workshop& shop, Recipe& recipe, Janitor& janitor, Claim& claim)
        : shop_(shop), recipe_(recipe), janitor_(janitor), claim_(claim) {
        manifest_.tool_version = CONTAINERIZE_VERSION;
        manifest_.prefix = claim.prefix;
    }

    Result<BuildSummary> run() {
        const auto start = std::chrono::steady_clock::now();
        // Each step leaves the next what it needs; the first that fails ends the build.
        using Step = Status (Build::*)();
        for (const Step step :
             {&Build::create, &Build::run_pre_install, &Build::install, &Build::add_venv_support,
              &Build::run_post_install, &Build::compile, &Build::record_environment, &Build::list_packages,
              &Build::pack, &Build::assemble}) {
            if (interrupted()) return fail_interrupted();
            if (auto done = (this->*step)(); !done) return fail(std::move(done.error()));
        }
        summary_.prefix = claim_.prefix;
        summary_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return summary_;
    }

private:
    Status create() {
        if (auto created = recipe_.create(); !created) return created;
        // The last two are what scripts written for tykky know.
        for (const char* name : {"CONTAINERIZE_PREFIX", "env_root", "install_root"})
            shop_.environment[name] = claim_.prefix.string();
        const std::string path =
            shop_.environment.contains("PATH") ? shop_.environment["PATH"] : "/usr/bin:/bin";
        shop_.environment["PATH"] = (claim_.prefix / "bin").string() + ":" + path;
        return {};
    }

    Status run_hook(const std::optional<fs::path>& script, const std::string& title) {
        if (!script) return {};
        Stage stage(title);
        auto outcome = shop_.run_inside({"bash", script->string()}, stage, "the script failed");
        if (!outcome) {
            if (outcome.error().where.empty()) outcome.error().where = script->string();
            return fail(std::move(outcome.error()));
        }
        stage.finish(script->filename().string());
        return {};
    }
    Status run_pre_install() { return run_hook(shop_.options.pre_install, "Running the pre-install script"); }
    Status install() { return recipe_.install(); }
    Status run_post_install() {
        return run_hook(shop_.options.post_install, "Running the post-install script");
    }
    Status compile() { return recipe_.compile(); }

    // Venvs made with this environment's python are on top of it: templates/python says how.
    Status add_venv_support() {
        if (recipe_.python_name().empty()) return {};
        std::error_code failed;
        const auto library = shop_.root() / "lib" / recipe_.python_name() / "site-packages";
        fs::copy(shop_.options.share / "python", library,
                 fs::copy_options::recursive | fs::copy_options::overwrite_existing, failed);
        if (failed) return fail_errno("cannot add support for venvs", library.string(), failed.value());
        return {};
    }

    Status record_environment() {
        auto activation = recipe_.activation();
        if (!activation) return fail(std::move(activation.error()));
        manifest_.activation = std::move(*activation);
        manifest_.activation_scripts = recipe_.launch_scripts();
        if (!shop_.options.environ_script) return {};
        // A script may build on TMPDIR: the build's own will be gone.
        Environment environment = shop_.environment;
        environment.erase("TMPDIR");
        const auto& users_own = shop_.inputs.environment;
        if (const auto users = users_own.find("TMPDIR"); users != users_own.end()) environment.insert(*users);
        auto changes = record_script(*shop_.options.environ_script, claim_.prefix, environment, shop_.join);
        if (!changes) return fail(std::move(changes.error()));
        manifest_.environment = std::move(*changes);
        return {};
    }

    Status list_packages() {
        auto listed = recipe_.packages();
        if (!listed) return fail(std::move(listed.error()));
        packages_ = std::move(*listed);
        return add_list_command();
    }

    // For users of tykky, and whoever looks around inside.
    Status add_list_command() const {
        const auto list = shop_.root() / "share/containerize/packages.txt";
        const auto command = shop_.root() / "bin/list-packages";
        std::error_code failed;
        if (fs::exists(fs::symlink_status(command, failed))) return {}; // a package's own
        fs::create_directories(list.parent_path(), failed);
        if (!failed) fs::create_directories(command.parent_path(), failed);
        if (failed) return fail_errno("cannot make a directory", list.parent_path().string(), failed.value());
        if (auto written = write_file(list, packages_); !written) return written;
        return write_file(command,
                          "#!/bin/sh\nexec cat \"$(dirname \"$(dirname \"$(realpath "
                          "\"$0\")\")\")/share/containerize/packages.txt\"\n",
                          true);
    }

    Status pack() {
        Stage stage("Packing the image");
        auto written =
            recipe_.pack([&](std::uint64_t done, std::uint64_t total) { stage.advance(done, total); });
        if (!written) return fail(std::move(written.error()));
        for (const auto& path : written->left_out)
            log::detail("left out, because it is no file: " + path);
        summary_.files = written->files;
        summary_.image_bytes = written->image_bytes;
        shop_.record["files"] = written->files;
        shop_.record["bytes"] = written->input_bytes;
        stage.finish(fmt::format("{} files, {} to {}", human_count(written->files),
                                 human_bytes(written->input_bytes), human_bytes(written->image_bytes)));
        return {};
    }

    Status assemble() {
        Stage stage("Publishing");
        manifest_.wrapper_paths = shop_.inputs.wrapper_paths;
        // What else is copied there is small beside the image.
        constexpr std::uint64_t allowance = 8U << 20U;
        if (auto room = check_room(claim_, summary_.image_bytes + allowance); !room) return room;
        auto assembly = make_assembly(claim_, janitor_);
        if (!assembly) return fail(std::move(assembly.error()));
        const mode_t umask_bits = shop_.options.umask_bits;
        auto commands = make_wrappers({.root = shop_.root(),
                                       .prefix = claim_.prefix,
                                       .paths = shop_.inputs.wrapper_paths,
                                       .launcher = shop_.options.libexec / "launcher",
                                       .output = *assembly,
                                       .umask_bits = umask_bits});
        if (!commands) return fail(std::move(commands.error()));
        summary_.commands = *commands;
        if (auto added = add_session(*assembly); !added) return added;
        const std::uint64_t size = summary_.image_bytes;
        if (auto added = add_image(shop_.image(), *assembly, manifest_,
                                   [&](std::uint64_t done) { stage.advance(done, size); });
            !added)
            return added;
        manifest_.created = utc_now("%Y-%m-%dT%H:%M:%SZ");
        shop_.record["command"] = shop_.options.command_line;
        shop_.record["spec"] = shop_.inputs.spec.string();
        auto kept = keep_records(*assembly / "share",
                                 {.inputs = shop_.inputs.files,
                                  .packages = packages_,
                                  .lock = recipe_.lock(),
                                  .log = log::current()},
                                 umask_bits);
        if (!kept) return fail(std::move(kept.error()));
        shop_.record["inputs"] = std::move(*kept);
        manifest_.build = std::move(shop_.record);
        if (interrupted()) return fail_interrupted();
        if (auto done = publish(claim_, *assembly, manifest_, janitor_); !done) return done;
        janitor_.keep_all_but(shop_.staging);
        stage.finish(fmt::format("{} commands", human_count(*commands)));
        return {};
    }

    Status add_session(const fs::path& assembly) const {
        std::error_code failed;
        const fs::path program = assembly / "libexec/containerize-session";
        fs::create_directories(program.parent_path(), failed);
        if (failed)
            return fail_errno("cannot make a directory", program.parent_path().string(), failed.value());
        const mode_t umask_bits = shop_.options.umask_bits;
        if (auto copied = copy_program(shop_.options.libexec / "session", program, umask_bits); !copied)
            return copied;
        // Tools that look at an environment from outside (editors) know a venv by this file.
        const fs::path mark = shop_.root() / "pyvenv.cfg";
        if (fs::exists(mark, failed)) return copy_file_with_mode(mark, assembly / "pyvenv.cfg", umask_bits);
        return {};
    }

    Workshop& shop_;
    Recipe& recipe_;
    Janitor& janitor_;
    Claim& claim_;
    std::string packages_;
    Manifest manifest_;
    BuildSummary summary_;
};

Result<BuildSummary> build_in(const BuildOptions& options, const Inputs& inputs, Janitor& janitor,
                              Claim& claim, const Staging& staging) {
    const auto resources = available_resources();
    be_polite(resources);
    std::error_code failed;
    fs::create_directories(staging.path() / "tmp", failed);
    if (failed) return fail_errno("cannot make a staging directory", staging.path().string(), failed.value());
    auto space = runtime::BuildNamespace::create();
    if (!space) return fail(std::move(space.error()));
    const pid_t holder = space->pid();
    Workshop shop{.options = options,
                  .inputs = inputs,
                  .prefix = claim.prefix,
                  .staging = staging.path(),
                  .resources = resources,
                  .jobs = options.jobs != 0 ? options.jobs : default_jobs(resources),
                  .space = std::move(*space),
                  .join = [holder] { return runtime::join_namespaces(holder); },
                  .environment = build_environment(inputs.environment, staging.path() / "tmp")};
    log::detail(fmt::format("containerize {}: {}", CONTAINERIZE_VERSION, options.command_line));
    log::detail(fmt::format("{} of {} CPUs, {} of memory, staging in {}", shop.jobs, resources.cpus,
                            human_bytes(resources.memory), staging.path().string()));
    const auto recipe =
        inputs.kind == spec::SpecKind::requirements ? make_pip_recipe(shop) : make_conda_recipe(shop);
    return Build(shop, *recipe, janitor, claim).run();
}

// Adds to the message where the log is: what it says may be the only trace of the reason.
void name_log(Error& error, const BuildOptions& options, const fs::path& staging) {
    log::detail("failed: " + to_string(error));
    // Programs such as ensurepip keep the reason to themselves.
    constexpr std::uint64_t nearly_full = 16U << 20U;
    if (const auto room = available_bytes(staging); room && *room < nearly_full)
        error.hint += (error.hint.empty() ? "" : "\n") + staging.parent_path().string() +
                      " is full: make room, or give --tmpdir another directory.";
    const fs::path log =
        options.log_copy ? *options.log_copy : save_log(log::current(), staging.parent_path());
    if (log.empty()) return;
    if (!error.hint.empty()) error.hint += "\n";
    error.hint += "The whole log: " + log.string();
}

} // namespace

Result<std::vector<conda::PackageRecord>> dry_run(const BuildOptions& options) {
    Inputs inputs;
    if (auto read = read_spec(options, inputs); !read) return fail(std::move(read.error()));
    if (inputs.kind == spec::SpecKind::requirements)
        return fail_input("--dry-run is for conda environments", {}, inputs.spec.string(),
                          "pip shows what it would do with `pip install --dry-run -r FILE`.");
    auto cache = conda::cache_directory(inputs.environment);
    if (!cache) return fail(std::move(cache.error()));
    auto plan = plan_conda(options, inputs, *cache);
    if (!plan) return fail(std::move(plan.error()));
    return std::move(plan->packages);
}

Result<BuildSummary> build(const BuildOptions& options) {
    auto inputs = check_inputs(options);
    if (!inputs) return fail(std::move(inputs.error()));

    sweep_staging(options.staging_parent);
    // The janitor outlives what is declared after it: the namespace's process holds its pipe, too.
    auto janitor = Janitor::start();
    if (!janitor) return fail(std::move(janitor.error()));
    auto claim = claim_prefix(inputs->prefix, *janitor);
    if (!claim) return fail(std::move(claim.error()));
    // Until the claim, another build may have put something there.
    if (auto still = check_prefix(options.prefix, options.force); !still)
        return fail(std::move(still.error()));
    auto staging = Staging::create(options.staging_parent);
    if (!staging) return fail(std::move(staging.error()));
    janitor->remove_tree_later(staging->path());
    if (auto opened = log::open(staging->path() / "build.log", options.log_level); !opened)
        return fail(std::move(opened.error()));
    if (options.log_copy)
        if (auto opened = log::also(*options.log_copy); !opened) {
            opened.error().fault = Fault::input;
            return fail(std::move(opened.error()));
        }

    auto built = build_in(options, *inputs, *janitor, *claim, *staging);
    if (!built && built.error().fault == Fault::failure && !interrupted())
        name_log(built.error(), options, staging->path());
    return built;
}

} // namespace containerize::install

#include "install/build.h"

#include "install/environ_script.h"
#include "install/inputs.h"
#include "install/janitor.h"
#include "install/prefix.h"
#include "install/publish.h"
#include "install/records.h"
#include "install/scripts.h"
#include "install/wrappers.h"
#include "pip/bundle.h"
#include "pip/venv.h"
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

using runtime::EnvironmentChange;
using runtime::Manifest;

/// The environment of all programs of a build. What they leave in their directory for temporary files goes
/// with the staging directory.
Environment build_environment(Environment environment, const fs::path& temporary) {
    environment["TMPDIR"] = temporary.string();
    return environment;
}

class Build {
public:
    Build(const BuildOptions& options, const Inputs& inputs, Janitor& janitor, Claim& claim,
          const Staging& staging)
        : options_(options), inputs_(inputs), janitor_(janitor), claim_(claim), staging_(staging),
          root_(staging.path() / "root"),
          environment_(build_environment(inputs.environment, staging.path() / "tmp")) {
        manifest_.tool_version = CONTAINERIZE_VERSION;
        manifest_.prefix = claim.prefix;
        manifest_.build = nlohmann::json::object();
    }

    Result<BuildSummary> run() {
        const auto start = std::chrono::steady_clock::now();
        resources_ = available_resources();
        jobs_ = options_.jobs != 0 ? options_.jobs : default_jobs(resources_);
        be_polite(resources_);
        log::detail(fmt::format("containerize {}: {}", CONTAINERIZE_VERSION, options_.command_line));
        log::detail(fmt::format("{} of {} CPUs, {} of memory, staging in {}", jobs_, resources_.cpus,
                                human_bytes(resources_.memory), staging_.path().string()));
        for (const auto& editable : inputs_.requirements.editable)
            log::info("Note: '" + editable +
                      "' is installed as editable: it stays where it is, outside the image.");
        // Each step leaves the next what it needs; the first that fails ends the build.
        using Step = Status (Build::*)();
        for (const Step step : {&Build::open_namespace, &Build::make_environment, &Build::run_pre_install,
                                &Build::install_requirements, &Build::add_venv_support,
                                &Build::run_post_install, &Build::compile, &Build::record_environment,
                                &Build::list_packages, &Build::pack, &Build::assemble}) {
            if (interrupted()) return fail_interrupted();
            if (auto done = (this->*step)(); !done) return fail(std::move(done.error()));
        }
        summary_.prefix = claim_.prefix;
        summary_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return summary_;
    }

private:
    Status open_namespace() {
        std::error_code failed;
        fs::create_directories(root_, failed);
        fs::create_directories(staging_.path() / "tmp", failed);
        if (failed) return fail_errno("cannot make a staging directory", root_.string(), failed.value());
        auto holder = runtime::NamespaceHolder::create(root_, claim_.prefix);
        if (!holder) return fail(std::move(holder.error()));
        holder_.emplace(std::move(*holder));
        join_ = [pid = holder_->pid()] { return runtime::join_namespaces(pid); };
        return {};
    }

    /// A command in the namespace, where the staging directory stands at the prefix.
    Command inside(std::vector<std::string> argv) const {
        return {.argv = std::move(argv),
                .environment = environment_,
                .working_directory = claim_.prefix,
                .in_child = join_,
                .on_line = {}};
    }
    [[nodiscard]] fs::path python() const { return claim_.prefix / "bin/python"; }

    Status make_environment() {
        Stage stage("Creating the environment");
        pip::Interpreter interpreter = inputs_.interpreter;
        const std::string original = interpreter.executable.string();
        if (options_.bundle_python) {
            stage.detail("copying " + original);
            auto copy = pip::bundle_python(
                interpreter,
                {.root = root_, .prefix = claim_.prefix, .environment = environment_, .in_child = join_});
            if (!copy) return fail(std::move(copy.error()));
            interpreter = std::move(*copy);
        }
        if (auto made = pip::make_venv({.interpreter = interpreter,
                                        .uv = inputs_.uv,
                                        .prefix = claim_.prefix,
                                        .environment = environment_,
                                        .in_child = join_});
            !made)
            return made;
        environment_["VIRTUAL_ENV"] = claim_.prefix.string();
        // The last two are what scripts written for tykky know.
        for (const char* name : {"CONTAINERIZE_PREFIX", "env_root", "install_root"})
            environment_[name] = claim_.prefix.string();
        const std::string path = environment_.contains("PATH") ? environment_["PATH"] : "/usr/bin:/bin";
        environment_["PATH"] = (claim_.prefix / "bin").string() + ":" + path;
        // "python3.11"; of a build without the global lock "python3.13t".
        python_name_ = inputs_.interpreter.standard_library.filename().string();
        manifest_.build["python"] = {
            {"version", interpreter.version}, {"executable", original}, {"bundled", options_.bundle_python}};
        stage.finish("Python " + interpreter.version + (options_.bundle_python ? ", bundled," : "") +
                     " from " + original);
        return {};
    }

    Status run_hook(const std::optional<fs::path>& script, const std::string& title) {
        if (!script) return {};
        Stage stage(title);
        auto command = inside({"bash", script->string()});
        command.on_line = [&stage](std::string_view line) { stage.detail(line); };
        auto outcome = containerize::run(command);
        if (!outcome) return fail(std::move(outcome.error()));
        if (!outcome->ok())
            return fail(
                {.what = "the script failed",
                 .why = "exit code " + std::to_string(outcome->exit_code) + "\n" + tail(outcome->output, 12),
                 .where = script->string(),
                 .hint = {}});
        stage.finish(script->filename().string());
        return {};
    }
    Status run_pre_install() { return run_hook(options_.pre_install, "Running the pre-install script"); }
    Status run_post_install() { return run_hook(options_.post_install, "Running the post-install script"); }

    Status install_requirements() {
        Stage stage("Installing packages");
        auto configuration = capture(inside({python().string(), "-m", "pip", "config", "list"}));
        if (!configuration) return fail(std::move(configuration.error()));
        auto choice = pip::choose_installer(options_.installer, inputs_.uv, configuration->output,
                                            inputs_.requirements, inputs_.environment);
        if (!choice) return fail(std::move(choice.error()));
        if (!choice->warning.empty()) log::warn(choice->warning);
        log::detail("installing with " + choice->reason);
        const bool by_uv = choice->installer == pip::Installer::uv;
        auto installed = pip::install(*choice,
                                      {.python = python(),
                                       .requirements = inputs_.spec,
                                       .working_directory = inputs_.working_directory,
                                       .environment = environment_,
                                       .in_child = join_},
                                      [&stage](std::string_view line) { stage.detail(line); });
        if (!installed) return installed;
        manifest_.build["installer"] = by_uv ? "uv" : "pip";
        if (auto repaired = repair_scripts(root_ / "bin", claim_.prefix); !repaired) return repaired;
        stage.finish(std::string("with ") + (by_uv ? "uv" : "pip"));
        return {};
    }

    // Venvs made with this environment's python are on top of it: templates/python says how.
    Status add_venv_support() {
        std::error_code failed;
        const auto library = root_ / "lib" / python_name_ / "site-packages";
        fs::copy(options_.share / "python", library,
                 fs::copy_options::recursive | fs::copy_options::overwrite_existing, failed);
        if (failed) return fail_errno("cannot add support for venvs", library.string(), failed.value());
        return {};
    }

    // Unchecked hashes: no run compares times or compiles again, whatever happens to times on the way into
    // the image.
    Status compile() {
        Stage stage("Compiling byte-code");
        std::vector<std::string> argv = {python().string(),
                                         "-m",
                                         "compileall",
                                         "-q",
                                         "-f",
                                         "-j",
                                         std::to_string(jobs_),
                                         "--invalidation-mode",
                                         "unchecked-hash",
                                         (claim_.prefix / "lib").string()};
        if (options_.bundle_python) argv.push_back((claim_.prefix / "python/lib").string());
        auto outcome = containerize::run(inside(argv));
        if (!outcome) return fail(std::move(outcome.error()));
        // Packages ship templates and tests of other Python versions as .py files: those cannot be compiled,
        // nor need be.
        stage.finish(outcome->ok() ? "all modules"
                                   : "all modules but some that are not Python (see the log)");
        return {};
    }

    Status record_environment() {
        manifest_.activation = {{EnvironmentChange::Kind::set, "VIRTUAL_ENV", "${prefix}"},
                                {EnvironmentChange::Kind::unset, "PYTHONHOME", {}},
                                {EnvironmentChange::Kind::prepend, "PATH", "${prefix}/bin"}};
        if (!options_.environ_script) return {};
        // A script may build on TMPDIR: the build's own will be gone.
        Environment environment = environment_;
        environment.erase("TMPDIR");
        if (const auto users = inputs_.environment.find("TMPDIR"); users != inputs_.environment.end())
            environment.insert(*users);
        auto changes = record_script(*options_.environ_script, claim_.prefix, environment, join_);
        if (!changes) return fail(std::move(changes.error()));
        manifest_.environment = std::move(*changes);
        return {};
    }

    Status list_packages() {
        auto listed = capture(inside({python().string(), "-m", "pip", "list", "--format", "freeze"}));
        if (!listed) return fail(std::move(listed.error()));
        // A script may have removed pip: then there is no list, and no harm.
        if (listed->ok()) packages_ = std::move(listed->output);
        return {};
    }

    Status pack() {
        Stage stage("Packing the image");
        std::error_code ignored;
        std::uint64_t total = 0;
        constexpr auto unreadable_too = fs::directory_options::skip_permission_denied;
        for (const auto& entry : fs::recursive_directory_iterator(root_, unreadable_too, ignored))
            if (entry.is_regular_file(ignored) && !entry.is_symlink(ignored))
                total += entry.file_size(ignored);
        const image::WriterOptions options{
            .compression = options_.compression,
            .block_size = options_.block_size,
            .jobs = jobs_,
            .memory = std::clamp<std::uint64_t>(resources_.memory / 8, 64U << 20U, 512U << 20U),
            .source_date_epoch = inputs_.source_date_epoch};
        auto written = image::write_tree(root_, image(), options, options_.umask_bits,
                                         [&](std::uint64_t done) { stage.advance(done, total); });
        if (!written) return fail(std::move(written.error()));
        for (const auto& path : written->left_out)
            log::detail("left out, because it is no file: " + path);
        summary_.files = written->files;
        summary_.image_bytes = written->image_bytes;
        manifest_.build["files"] = written->files;
        manifest_.build["bytes"] = written->input_bytes;
        stage.finish(fmt::format("{} files, {} to {}", human_count(written->files),
                                 human_bytes(written->input_bytes), human_bytes(written->image_bytes)));
        return {};
    }
    [[nodiscard]] fs::path image() const { return staging_.path() / "env.sqfs"; }

    Status assemble() {
        Stage stage("Publishing");
        manifest_.wrapper_paths = inputs_.wrapper_paths;
        // What else is copied there is small beside the image.
        constexpr std::uint64_t allowance = 8U << 20U;
        if (auto room = check_room(claim_, summary_.image_bytes + allowance); !room) return room;
        auto assembly = make_assembly(claim_, janitor_);
        if (!assembly) return fail(std::move(assembly.error()));
        auto commands = make_wrappers({.root = root_,
                                       .prefix = claim_.prefix,
                                       .paths = inputs_.wrapper_paths,
                                       .launcher = options_.libexec / "launcher",
                                       .output = *assembly,
                                       .umask_bits = options_.umask_bits});
        if (!commands) return fail(std::move(commands.error()));
        summary_.commands = *commands;
        if (auto added = add_session(*assembly); !added) return added;
        const std::uint64_t size = summary_.image_bytes;
        if (auto added = add_image(image(), *assembly, manifest_,
                                   [&](std::uint64_t done) { stage.advance(done, size); });
            !added)
            return added;
        manifest_.created = utc_now("%Y-%m-%dT%H:%M:%SZ");
        manifest_.build["command"] = options_.command_line;
        manifest_.build["spec"] = inputs_.spec.string();
        auto kept =
            keep_records(*assembly / "share", inputs_.files, packages_, log::current(), options_.umask_bits);
        if (!kept) return fail(std::move(kept.error()));
        manifest_.build["inputs"] = std::move(*kept);
        if (interrupted()) return fail_interrupted();
        if (auto done = publish(claim_, *assembly, manifest_, janitor_); !done) return done;
        janitor_.keep_all_but(staging_.path());
        stage.finish(fmt::format("{} commands", human_count(*commands)));
        return {};
    }

    Status add_session(const fs::path& assembly) const {
        std::error_code failed;
        const fs::path program = assembly / "libexec/containerize-session";
        fs::create_directories(program.parent_path(), failed);
        if (failed)
            return fail_errno("cannot make a directory", program.parent_path().string(), failed.value());
        if (auto copied = copy_program(options_.libexec / "session", program, options_.umask_bits); !copied)
            return copied;
        // Tools that look at an environment from outside (editors) know a venv by this file.
        if (fs::exists(root_ / "pyvenv.cfg", failed))
            return copy_file_with_mode(root_ / "pyvenv.cfg", assembly / "pyvenv.cfg", options_.umask_bits);
        return {};
    }

    const BuildOptions& options_;
    const Inputs& inputs_;
    Janitor& janitor_;
    Claim& claim_;
    const Staging& staging_;
    fs::path root_; ///< of the environment, before it is packed
    Environment environment_;
    Resources resources_;
    unsigned jobs_ = 1;
    std::optional<runtime::NamespaceHolder> holder_;
    std::function<int()> join_;
    std::string python_name_; ///< of its directory in lib
    std::string packages_;
    Manifest manifest_;
    BuildSummary summary_;
};

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

    auto built = Build(options, *inputs, *janitor, *claim, *staging).run();
    if (!built && built.error().fault == Fault::failure && !interrupted())
        name_log(built.error(), options, staging->path());
    return built;
}

} // namespace containerize::install

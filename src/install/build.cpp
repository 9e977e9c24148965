#include "install/build.h"

#include "install/environ_script.h"
#include "install/janitor.h"
#include "install/prefix.h"
#include "install/publish.h"
#include "install/wrappers.h"
#include "pip/bundle.h"
#include "pip/interpreter.h"
#include "runtime/manifest.h"
#include "runtime/namespace.h"
#include "spec/requirements.h"
#include "spec/spec.h"
#include "util/digest.h"
#include "util/filesystem.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/process.h"
#include "util/progress.h"
#include "util/resources.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <map>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::install {

namespace {

using runtime::EnvironmentChange;
using runtime::Manifest;

std::string utc_now(const char* format) {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[64];
    return {text, std::strftime(text, sizeof text, format, &parts)};
}

Result<std::optional<std::uint32_t>> source_date_epoch() {
    const char* text = std::getenv("SOURCE_DATE_EPOCH");
    if (text == nullptr || *text == '\0') return std::nullopt;
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (*end != '\0' || value > 0xFFFFFFFFULL)
        return fail_input("SOURCE_DATE_EPOCH is not a number of seconds", {}, text, {});
    return static_cast<std::uint32_t>(value);
}

/// The user's environment, less what would lead a Python astray, plus what a build wants of pip.
Environment build_environment(const fs::path& temporary) {
    Environment environment = current_environment();
    for (const char* name : {"PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "VIRTUAL_ENV", "CONDA_PREFIX",
                             "__PYVENV_LAUNCHER__", "CONTAINERIZE_PREFIX"})
        environment.erase(name);
    environment["PYTHONNOUSERSITE"] = "1";
    environment["PYTHONHASHSEED"] = "0"; // byte-code is the same each time
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1";
    environment["TMPDIR"] = temporary.string();
    return environment;
}

Status check_file(const std::optional<fs::path>& file, const char* option) {
    struct stat info {};
    if (!file ||
        (stat(file->c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(file->c_str(), R_OK) == 0))
        return {};
    return fail_input(std::string("cannot read the script for ") + option, {}, file->string(), {});
}

class Build {
public:
    Build(const BuildOptions& options, Janitor& janitor, Claim& claim, const Staging& staging)
        : options_(options), janitor_(janitor), claim_(claim), staging_(staging),
          root_(staging.path() / "root"), environment_(build_environment(staging.path() / "tmp")) {
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
        // Each step leaves the next what it needs; the first that fails ends the build.
        using Step = Status (Build::*)();
        for (const Step step :
             {&Build::read_spec, &Build::open_namespace, &Build::make_environment, &Build::run_pre_install,
              &Build::install_requirements, &Build::add_venv_support, &Build::run_post_install,
              &Build::compile, &Build::record_environment, &Build::list_packages, &Build::pack,
              &Build::assemble}) {
            if (interrupted()) return fail_interrupted();
            if (auto done = (this->*step)(); !done) return fail(std::move(done.error()));
        }
        summary_.prefix = claim_.prefix;
        summary_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return summary_;
    }

private:
    Status read_spec() {
        auto requirements = spec::read_requirements(options_.spec, working_directory_);
        if (!requirements) return fail(std::move(requirements.error()));
        requirements_ = std::move(*requirements);
        for (const auto& editable : requirements_.editable)
            log::info("Note: '" + editable +
                      "' is installed as editable: it stays where it is, outside the image.");
        for (const auto& [file, option] : {std::pair{options_.pre_install, "--pre-install"},
                                           std::pair{options_.post_install, "--post-install"},
                                           std::pair{options_.environ_script, "--environ"}})
            if (auto good = check_file(file, option); !good) return good;
        auto epoch = source_date_epoch();
        if (!epoch) return fail(std::move(epoch.error()));
        epoch_ = *epoch;
        return {};
    }

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

    Status expect_success(const Command& command, const std::string& what) const {
        auto outcome = containerize::run(command);
        if (!outcome) return fail(std::move(outcome.error()));
        if (outcome->ok()) return {};
        return fail(
            {.what = what,
             .why = "exit code " + std::to_string(outcome->exit_code) + "\n" + tail(outcome->output, 12),
             .where = {},
             .hint = {}});
    }

    Status make_environment() {
        Stage stage("Making the environment");
        auto interpreter = pip::choose_interpreter(options_.python, environment_);
        if (!interpreter) return fail(std::move(interpreter.error()));
        if (!interpreter->has_venv)
            return fail_input("this Python has no venv module", {}, interpreter->executable.string(),
                              "Install it (Debian: python3-venv), or give --python another interpreter.");
        const fs::path original = interpreter->executable;
        if (options_.bundle_python) {
            stage.detail("copying " + original.string());
            interpreter = pip::bundle_python(
                *interpreter,
                {.root = root_, .prefix = claim_.prefix, .environment = environment_, .in_child = join_});
            if (!interpreter) return fail(std::move(interpreter.error()));
        }
        const bool own_pip = interpreter->has_ensurepip;
        if (!own_pip && !interpreter->has_pip)
            return fail_input("this Python can make no environment with pip",
                              "it has neither ensurepip nor pip", interpreter->executable.string(),
                              "Install them (Debian: python3-venv), or give --python another interpreter.");
        std::vector<std::string> argv = {interpreter->executable.string(), "-m", "venv"};
        if (!own_pip) argv.emplace_back("--without-pip");
        argv.push_back(claim_.prefix.string());
        if (auto done = expect_success(inside(argv), "the environment could not be made"); !done) return done;
        if (!own_pip) {
            argv = {interpreter->executable.string(),
                    "-m",
                    "pip",
                    "--python",
                    python().string(),
                    "install",
                    "--no-compile",
                    "pip"};
            if (auto done = expect_success(inside(argv), "pip could not be installed"); !done) return done;
        }
        environment_["VIRTUAL_ENV"] = claim_.prefix.string();
        environment_["CONTAINERIZE_PREFIX"] = claim_.prefix.string();
        const std::string path = environment_.contains("PATH") ? environment_["PATH"] : "/usr/bin:/bin";
        environment_["PATH"] = (claim_.prefix / "bin").string() + ":" + path;
        python_name_ = fmt::format("python{}.{}", interpreter->major, interpreter->minor);
        manifest_.build["python"] = {{"version", interpreter->version},
                                     {"executable", original.string()},
                                     {"bundled", options_.bundle_python}};
        stage.finish("Python " + interpreter->version + (options_.bundle_python ? ", bundled," : "") +
                     " from " + original.string());
        return {};
    }

    Status run_hook(const std::optional<fs::path>& script, const std::string& title) {
        if (!script) return {};
        Stage stage(title);
        auto command = inside({"/bin/bash", script->string()});
        command.environment->emplace("env_root", claim_.prefix.string());
        command.environment->emplace("install_root", claim_.prefix.string());
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
        const auto path = current_environment();
        const auto entry = path.find("PATH");
        auto choice = pip::choose_installer(
            options_.installer, find_program("uv", entry == path.end() ? "/usr/bin:/bin" : entry->second),
            configuration->output);
        if (!choice) return fail(std::move(choice.error()));
        log::detail("installing with " + choice->reason);
        const bool by_uv = choice->installer == pip::Installer::uv;
        auto installed = pip::install(*choice,
                                      {.python = python(),
                                       .requirements = options_.spec,
                                       .working_directory = working_directory_,
                                       .environment = environment_,
                                       .in_child = join_},
                                      [&stage](std::string_view line) { stage.detail(line); });
        if (!installed) return installed;
        manifest_.build["installer"] = by_uv ? "uv" : "pip";
        stage.finish(std::string("with ") + (by_uv ? "uv" : "pip"));
        return {};
    }

    // Venvs made with this environment's python are on top of it: templates/python says how.
    Status add_venv_support() {
        std::error_code failed;
        const auto library = root_ / "lib" / python_name_ / "site-packages";
        fs::copy(options_.share / "python", library, fs::copy_options::overwrite_existing, failed);
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
        auto changes = record_script(*options_.environ_script, claim_.prefix, environment_, join_);
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
        for (const auto& entry : fs::recursive_directory_iterator(root_, ignored))
            if (entry.is_regular_file(ignored) && !entry.is_symlink(ignored))
                total += entry.file_size(ignored);
        const image::WriterOptions options{
            .compression = options_.compression,
            .block_size = options_.block_size,
            .jobs = jobs_,
            .memory = std::clamp<std::uint64_t>(resources_.memory / 8, 64U << 20U, 512U << 20U),
            .source_date_epoch = epoch_};
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
        auto paths = check_wrapper_paths(options_.wrapper_paths, claim_.prefix, root_);
        if (!paths) return fail(std::move(paths.error()));
        manifest_.wrapper_paths = *paths;
        auto assembly = make_assembly(claim_, janitor_);
        if (!assembly) return fail(std::move(assembly.error()));
        auto commands = make_wrappers({.root = root_,
                                       .prefix = claim_.prefix,
                                       .paths = *paths,
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
        manifest_.build["spec"] = options_.spec.string();
        if (auto added = add_share(*assembly); !added) return added;
        if (interrupted()) return fail_interrupted();
        if (auto done = publish(claim_, *assembly, manifest_); !done) return done;
        janitor_.keep_all_but(staging_.path());
        stage.finish(fmt::format("{} commands", human_count(*commands)));
        return {};
    }

    Status add_session(const fs::path& assembly) const {
        std::error_code failed;
        const fs::path program = assembly / "libexec/containerize-session";
        fs::create_directories(program.parent_path(), failed);
        fs::copy_file(options_.libexec / "session", program, failed);
        if (failed) return fail_errno("cannot copy the session program", program.string(), failed.value());
        if (chmod(program.c_str(), 0777 & ~options_.umask_bits) != 0)
            return fail_errno("cannot copy the session program", program.string());
        // Tools that look at an environment from outside (editors) know a venv by this file.
        if (fs::exists(root_ / "pyvenv.cfg", failed))
            fs::copy_file(root_ / "pyvenv.cfg", assembly / "pyvenv.cfg", failed);
        return {};
    }

    // Inputs as given, what was installed, and the log so far.
    Status add_share(const fs::path& assembly) {
        const fs::path share = assembly / "share";
        const fs::path inputs = share / "inputs";
        std::error_code failed;
        fs::create_directories(inputs, failed);
        std::map<std::string, int> used;
        nlohmann::json listed = nlohmann::json::array();
        const auto keep = [&](const fs::path& file) {
            // Includes of the same name from several directories are told apart by a number.
            std::string name = file.filename().string();
            if (const int before = used[name]++; before > 0) name = std::to_string(before) + "-" + name;
            fs::copy_file(file, inputs / name, failed);
            auto digest = sha256_of_file(file);
            listed.push_back({{"file", file.string()}, {"kept_as", name}, {"sha256", digest ? *digest : ""}});
        };
        for (const auto& file : requirements_.files)
            keep(file);
        for (const auto& script : {options_.pre_install, options_.post_install, options_.environ_script})
            if (script) keep(*script);
        manifest_.build["inputs"] = std::move(listed);
        fs::copy_file(log::current(), share / "build.log", failed);
        if (failed) return fail_errno("cannot keep the inputs and the log", share.string(), failed.value());
        return write_file(share / "packages.txt", packages_);
    }

    const BuildOptions& options_;
    Janitor& janitor_;
    Claim& claim_;
    const Staging& staging_;
    fs::path working_directory_ = fs::current_path();
    fs::path root_; ///< of the environment, before it is packed
    Environment environment_;
    Resources resources_;
    unsigned jobs_ = 1;
    spec::Requirements requirements_;
    std::optional<std::uint32_t> epoch_;
    std::optional<runtime::NamespaceHolder> holder_;
    std::function<int()> join_;
    std::string python_name_; ///< "python3.11"
    std::string packages_;
    Manifest manifest_;
    BuildSummary summary_;
};

// What is left of a failed build: its log, beside the staging directory.
std::string save_log(const fs::path& staging) {
    const fs::path log = staging.parent_path() / fmt::format("containerize-failed-{}-{}-{}.log", geteuid(),
                                                             utc_now("%Y%m%dT%H%M%SZ"), getpid());
    auto copied = copy_file_synced(staging / "build.log", log);
    return copied ? log.string() : std::string();
}

} // namespace

Result<BuildSummary> build(const BuildOptions& options) {
    auto prefix = check_prefix(options.prefix, options.force);
    if (!prefix) return fail(std::move(prefix.error()));
    BuildOptions resolved = options;
    auto file = resolve(options.spec);
    if (!file) return fail(std::move(file.error()));
    resolved.spec = *file;
    if (auto kind = spec::recognise_supported(options.spec); !kind) return fail(std::move(kind.error()));

    sweep_staging(options.staging_parent);
    // The order matters: the namespace must go before the janitor is waited for, because its process holds
    // the pipe too.
    auto janitor = Janitor::start();
    if (!janitor) return fail(std::move(janitor.error()));
    auto claim = claim_prefix(*prefix);
    if (!claim) return fail(std::move(claim.error()));
    for (const auto& made : claim->made_parents)
        janitor->remove_directory_later(made);
    if (!claim->existed) janitor->remove_directory_later(claim->prefix);
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

    auto built = Build(resolved, *janitor, *claim, *staging).run();
    if (!built && built.error().fault == Fault::failure && !interrupted() && !options.log_copy) {
        log::detail("failed: " + to_string(built.error()));
        if (const auto log = save_log(staging->path()); !log.empty())
            built.error().hint += (built.error().hint.empty() ? "" : "\n") + ("The whole log: " + log);
    }
    return built;
}

} // namespace containerize::install

#include "cli/build_arguments.h"

#include "cli/command.h"
#include "cli/configured.h"
#include "cli/exec.h"
#include "cli/help.h"
#include "conda/virtual_packages.h"
#include "config/host_profile.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "gpu/injection.h"
#include "inputs/find_base.h"
#include "manifest/bind.h"
#include "manifest/launch_settings.h"
#include "util/log.h"
#include "util/timings.h"

#include <cstdio>
#include <ctime>
#include <utility>

namespace containerize::cli {

namespace {

using config::Key;

constexpr const char* root_group = "Root filesystem";
constexpr const char* start_group = "Start of programs";

/// The configured binds, followed by the typed ones.
Result<std::vector<manifest::Bind>> choose_binds(const BuildArguments& arguments,
                                                 const Configured& configured) {
    std::vector<manifest::Bind> binds;
    const auto take = [&](const std::string& text, const std::string& where, bool required) -> Status {
        auto parsed = manifest::parse_binds(text);
        if (!parsed) parsed.error().where = where;
        auto parts = TRY(std::move(parsed));
        for (auto& bind : parts) {
            bind.required = bind.required || required;
            binds.push_back(std::move(bind));
        }
        return {};
    };
    for (const auto& [text, where] : configured.written(Key::binds))
        TRY(take(text, where, false));
    for (const auto& text : arguments.binds)
        TRY(take(text, {}, arguments.bind_required));
    return binds;
}

/// Adds the configured and typed host profiles if there is a base. The host's own root does not need them.
Status add_host_profiles(const BuildArguments& arguments, const Configured& configured,
                         inputs::BuildOptions& options) {
    auto wanted = configured.written(Key::host_profiles);
    for (const auto& name : arguments.host_profiles)
        wanted.push_back({.text = name});
    for (const auto& [name, where] : wanted) {
        auto profile = config::read_host_profile(name, options.share / "host");
        if (!profile) {
            if (profile.error().where.empty()) profile.error().where = where;
            return fail(std::move(profile.error()));
        }
        if (options.settings.base.reference == "host") continue;
        options.settings.binds.insert(options.settings.binds.end(), profile->binds.begin(),
                                      profile->binds.end());
        options.settings.host_libraries.insert(options.settings.host_libraries.end(),
                                               profile->libraries.begin(), profile->libraries.end());
    }
    return {};
}

Status choose_values(const BuildArguments& arguments, const Configured& configured,
                     inputs::BuildOptions& options) {
    options.installer = TRY(pip::parse_installer(configured.text(Key::installer, arguments.installer)));
    options.compression =
        TRY(image::parse_compression(configured.text(Key::compression, arguments.compression)));
    options.block_size = TRY(image::parse_block_size(configured.text(Key::block_size, arguments.block_size)));
    options.settings.base.reference = configured.text(Key::base, arguments.base);
    if (options.settings.base.reference == "auto" && inputs::host_serves())
        options.settings.base.reference = "host";
    // A base has its own Python, which a site or user may not have meant.
    options.python = options.settings.base.reference == "host"
                         ? configured.text(Key::python, arguments.python)
                         : arguments.python;
    options.python_typed = !arguments.python.empty();
    options.auto_base = configured.text(Key::auto_base, {});
    options.bases = configured.bases();
    if (options.bases) options.bases->offline = arguments.offline;
    options.settings.base.isolate = arguments.isolate;
    options.settings.binds = TRY(choose_binds(arguments, configured));
    TRY(add_host_profiles(arguments, configured, options));
    if (!arguments.gpu.empty()) options.settings.gpu = arguments.gpu;
    auto engine = TRY(configured.engine(arguments.engine));
    options.settings.engine = engine ? to_text(*engine) : configured.text(Key::engine, {});
    options.change_engine = engine.has_value();
    options.settings.prefetch = configured.text(Key::prefetch, {});
    options.settings.stage = configured.text(Key::stage, arguments.stage);
    TRY(manifest::parse_stage_place(options.settings.stage));
    options.settings.kernel_mount = configured.kernel_mount();
    options.profile = !arguments.no_profile;
    if (!arguments.layout.empty()) {
        auto layout = TRY(inputs::parse_layout(arguments.layout));
        options.layout = layout;
        if (layout == inputs::Layout::profile && !options.profile)
            return fail_input("--layout profile cannot be combined with --no-profile", {}, {},
                              "Leave out one of them.");
    }
    options.profile_commands = arguments.profile_commands;
    options.jobs = configured.jobs(arguments.jobs);
    options.conda.use_config = configured.use_conda_config(arguments.no_config);
    options.wrapper_paths = configured.typed_wrapper_paths(arguments.wrapper_paths);
    options.site = configured.site_settings(!arguments.wrapper_paths.empty());
    return {};
}

Status choose_directories(const BuildArguments& arguments, const Configured& configured,
                          inputs::BuildOptions& options) {
    options.staging_parent = TRY(configured.staging(arguments.staging_parent));
    options.site.cache = TRY(configured.cache());
    options.site.cache_limits = TRY(configured.cache_limits());
    options.site.site_caches = TRY(configured.site_caches());
    if (!options.prefix.empty()) return {};
    auto prefix = TRY(configured.prefix());
    options.prefix = prefix.string();
    return {};
}

/// Expands "~/x", which the shell does not do in --prefix=~/x.
fs::path with_home(const std::string& path) {
    const fs::path home = variable("HOME");
    return !path.starts_with("~/") || home.empty() ? fs::path(path) : home / path.substr(2);
}

} // namespace

Result<inputs::BuildOptions> options_from(const BuildArguments& arguments, const std::string& command_line) {
    return options_from(arguments, command_line, TRY(Configured::read()));
}

Result<inputs::BuildOptions> options_from(const BuildArguments& arguments, const std::string& command_line,
                                          const Configured& configured) {
    catch_interrupts();
    inputs::BuildOptions options;
    options.prefix = with_home(arguments.prefix);
    options.spec = arguments.spec;
    options.uv = arguments.uv;
    options.bundle_python = arguments.bundle_python;
    options.system_site_packages = arguments.system_site_packages;
    options.force = arguments.force;
    options.keep_files = arguments.keep_files;
    options.command_line = command_line;
    options.log_level = arguments.quiet     ? log::Level::quiet
                        : arguments.verbose ? log::Level::verbose
                                            : log::Level::normal;
    for (const auto& [given, option] : {std::pair{&arguments.pre_install, &options.pre_install},
                                        std::pair{&arguments.post_install, &options.post_install},
                                        std::pair{&arguments.environ_script, &options.environ_script},
                                        std::pair{&arguments.log_file, &options.log_copy}}) {
        if (!given->empty()) *option = TRY(resolve(*given));
    }
    options.libexec = installation_tree() / "libexec/containerize";
    options.share = installation_tree() / "share/containerize";
    TRY(check_installation_tree());
    TRY(choose_values(arguments, configured, options));
    for (const auto& file : arguments.requirements)
        options.conda.requirements.emplace_back(file);
    if (!arguments.platform.empty()) options.conda.subdir = arguments.platform;
    options.conda.cuda = arguments.cuda;
    if (arguments.exclude_newer) {
        auto cutoff = parse_cutoff(*arguments.exclude_newer, std::time(nullptr));
        if (!cutoff) cutoff.error().where = "--exclude-newer";
        options.exclude_newer = TRY(std::move(cutoff));
    }
    options.conda.environment = arguments.environment;
    options.conda.categories = arguments.categories;
    options.conda.groups = arguments.groups;
    options.conda.extras = arguments.extras;
    options.conda.offline = arguments.offline;
    options.conda.allow_defaults = arguments.allow_defaults;
    options.conda.constraints = !arguments.no_constraints;
    TRY(choose_directories(arguments, configured, options));
    options.umask_bits = configured.umask_bits();
    return options;
}

CLI::Option* add_spec(CLI::App& command, BuildArguments& arguments) {
    return command
        .add_option(
            "SPEC", arguments.spec,
            "A conda environment.yml, a pixi.toml, a pip requirements file, a lock file of conda, pixi, uv, "
            "poetry, pipenv or pip, a pyproject.toml, or a Python script with metadata")
        ->type_name("FILE");
}

void add_prefix_options(CLI::App& command, BuildArguments& arguments) {
    add_configured(command, Key::prefix, arguments.prefix)->type_name("DIR");
    add_force_option(command, arguments);
}

void add_force_option(CLI::App& command, BuildArguments& arguments) {
    command.add_flag("--force", arguments.force, "Replace an existing installation");
}

void add_hook_options(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group("Scripts and wrappers");
    command.add_option("--pre-install", arguments.pre_install, "Script to run before packages are installed")
        ->type_name("FILE");
    command
        .add_option("--post-install", arguments.post_install, "Script to run after packages are installed")
        ->type_name("FILE");
    command.add_option("--environ", arguments.environ_script, environ_description)->type_name("FILE");
    command
        .add_option("-w,--wrapper-paths", arguments.wrapper_paths,
                    "Further directories below the installation, or single programs, that get wrappers, "
                    "separated by commas")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("PATHS")
        ->configurable();
}

void add_solve_options(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group("Packages");
    command.add_option("--cuda", arguments.cuda, "CUDA version of the nodes that will run the programs")
        ->type_name("X.Y")
        ->default_str("this machine's, if it has a driver");
    command
        .add_option("--exclude-newer", arguments.exclude_newer,
                    "Leave out packages that were published later than this date or time, or within this "
                    "duration, such as `7 days`")
        ->type_name("DATE")
        ->default_str("no limit");
    command.add_flag("--offline", arguments.offline,
                     "Use only caches and --find-links directories, no network");
    command.add_flag("--no-config", arguments.no_config, "Ignore .condarc files and CONDA_ variables")
        ->configurable();
    command.add_flag("--allow-defaults", arguments.allow_defaults,
                     "Permit Anaconda's channels. Their terms of service apply");
}

void add_platform_option(CLI::App& command, BuildArguments& arguments, const char* description) {
    command.add_option("--platform", arguments.platform, description)
        ->type_name("PLATFORM")
        ->default_str("this machine's")
        ->check(CLI::IsMember(conda::platforms()));
}

void add_requirements_options(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group("Packages");
    command.add_option("--environment", arguments.environment, "Environment of a pixi.toml or a pixi.lock")
        ->type_name("NAME")
        ->default_str("default");
    command
        .add_option("--group", arguments.groups,
                    "Dependency group of a Python project to install, in addition to its dependencies")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("NAME");
    command
        .add_option("--extra", arguments.extras,
                    "Extra of a Python project to install, in addition to its dependencies")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("NAME");
    add_configured(command, Key::installer, arguments.installer)->type_name("NAME");
}

void add_content_options(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group("Packages");
    command
        .add_option("-r,--requirement,--requirements,--requirements-file", arguments.requirements,
                    "A pip requirements file, in addition to SPEC")
        ->allow_extra_args(false) // what follows the file is a separate argument
        ->type_name("FILE");
    command
        .add_option("--category", arguments.categories,
                    "Category of a conda-lock file to install, in addition to main")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("NAME");
    add_requirements_options(command, arguments);
    add_solve_options(command, arguments);
    command.add_flag("--no-constraints", arguments.no_constraints,
                     "Let pip replace packages that conda installed");
    command.add_flag("--uv", arguments.uv,
                     "Install uv first, and use it. It becomes part of the environment");
    // tykky's users are used to it, but there is only one solver here
    command.add_flag("--mamba", arguments.mamba, "Accepted; has no effect");
    add_hook_options(command, arguments);
}

void add_root_options(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group(root_group);
    add_configured(command, Key::base, arguments.base)->type_name("BASE");
    add_container_options(command, arguments);
}

void add_container_options(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group(root_group);
    command.add_flag("--isolate", arguments.isolate, "With a base image: hide the host, except for binds");
    command
        .add_option("--bind", arguments.binds,
                    "Show a file or directory of the host to programs, at DST if that is given")
        ->type_name("SRC[:DST[:ro]]")
        ->allow_extra_args(false)
        ->configurable();
    command.add_flag("--bind-required", arguments.bind_required,
                     "Do not start programs if the source of a --bind is missing");
    command
        .add_option(
            "--host-profile", arguments.host_profiles,
            "With a base image: a profile that lists the files of the host that it needs. One of slurm, "
            "infiniband and slingshot, or a file")
        ->type_name("NAME|FILE")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->configurable()
        ->check(offer("slurm,infiniband,slingshot,..."));
    command
        .add_option(
            "--gpu", arguments.gpu,
            "With a base image: the vendor of the GPU drivers that programs get. `auto` is the vendor of "
            "the node's GPUs")
        ->type_name("VENDOR")
        ->default_str("auto")
        ->check(CLI::IsMember(gpu::policy_names()));
}

void add_engine_option(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group(start_group);
    add_configured(command, Key::engine, arguments.engine)->type_name("NAME");
}

void add_stage_option(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group(start_group);
    add_configured(command, Key::stage, arguments.stage)->type_name("PLACE");
}

void add_profile_options(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group(start_group);
    auto* none =
        command.add_flag("--no-profile", arguments.no_profile, "Do not record what programs read first");
    command.add_option("--profile", arguments.profile_commands, "Record what this command reads first")
        ->default_str("the imports of all packages")
        ->allow_extra_args(false)
        ->excludes(none)
        ->type_name("COMMAND");
}

void add_layout_option(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group(start_group);
    command
        .add_option("--layout", arguments.layout,
                    "Order of the files in the image. `profile` puts recorded files first")
        ->type_name("KIND")
        ->default_str("path")
        ->check(offer("path,profile"));
}

void add_work_options(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group("Work");
    add_configured(command, Key::jobs, arguments.jobs)->check(CLI::Range(1, 1024))->type_name("N");
    add_configured(command, Key::compression, arguments.compression)->type_name("KIND");
    add_configured(command, Key::block_size, arguments.block_size)->type_name("SIZE");
    add_configured(command, Key::staging, arguments.staging_parent)->type_name("DIR");
    add_log_options(command, arguments);
}

void add_log_options(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group("Work");
    auto* verbose = command.add_flag("-v,--verbose", arguments.verbose, "Show the output of all programs");
    command.add_flag("-q,--quiet", arguments.quiet, "Show only warnings and errors")->excludes(verbose);
    command.add_option("--log", arguments.log_file, "Also write the log to this file")->type_name("FILE");
}

void add_timings_option(CLI::App& command, BuildArguments& arguments) {
    command.option_defaults()->group("Work");
    command.add_flag("--timings", arguments.timings,
                     "Show at the end how long each stage took, also in the log");
}

Result<int> with_timings(const BuildArguments& arguments, const std::function<Result<int>()>& command) {
    if (!arguments.timings) return command();
    timings::start();
    auto done = command();
    std::fflush(stdout); // the chart comes after what the command says
    const auto recording = timings::recording();
    log::table([&](unsigned columns) { return "Timings:\n" + timings::chart(recording, columns); });
    return done;
}

} // namespace containerize::cli

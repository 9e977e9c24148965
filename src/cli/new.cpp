#include "cli/command.h"
#include "conda/package_record.h"
#include "install/build.h"
#include "util/filesystem.h"
#include "util/interrupt.h"
#include "util/log.h"
#include "util/progress.h"

#include <cstdio>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

namespace containerize::cli {

namespace {

struct NewArguments {
    std::string prefix, spec, python, installer = "auto", base = "host", compression = "zstd:3",
                                      block_size = "128K";
    std::string pre_install, post_install, environ_script, staging_parent, log_file;
    std::vector<std::string> wrapper_paths, requirements;
    std::string cuda;
    bool offline = false, no_config = false, allow_defaults = false, no_constraints = false, dry_run = false,
         json = false, mamba = false, uv = false;
    unsigned jobs = 0;
    bool bundle_python = false, force = false, verbose = false, quiet = false;
};

constexpr const char* footer = R"(Examples:
  containerize new --prefix ~/envs/ml env.yml
  containerize new --prefix ~/envs/ml --cuda 12.4 env.yml     # for nodes with a GPU, on one without
  containerize new --prefix ~/envs/ml requirements.txt
  containerize new --prefix /scratch/me/ml --python 3.11 requirements.txt
  containerize new --prefix ml --post-install fetch-data.sh --environ settings.sh requirements.txt
  containerize new --prefix ml --force requirements.txt      # replace what is there

Everything is built on node-local storage; only finished files are written to the prefix.
If anything fails, or you press Ctrl-C, the prefix stays as it was.)";

Result<std::optional<fs::path>> absolute_file(const std::string& given) {
    if (given.empty()) return std::nullopt;
    auto path = resolve(given);
    if (!path) return fail(std::move(path.error()));
    return *path;
}

Result<install::BuildOptions> options_from(const NewArguments& arguments, const std::string& command_line) {
    install::BuildOptions options;
    options.prefix = arguments.prefix;
    options.spec = arguments.spec;
    options.python = arguments.python;
    options.bundle_python = arguments.bundle_python;
    options.wrapper_paths = arguments.wrapper_paths;
    options.jobs = arguments.jobs;
    options.force = arguments.force;
    options.staging_parent = arguments.staging_parent;
    options.command_line = command_line;
    options.log_level = arguments.quiet     ? log::Level::quiet
                        : arguments.verbose ? log::Level::verbose
                                            : log::Level::normal;
    auto installer = pip::parse_installer(arguments.installer);
    if (!installer) return fail(std::move(installer.error()));
    options.installer = *installer;
    auto compression = image::parse_compression(arguments.compression);
    if (!compression) return fail(std::move(compression.error()));
    options.compression = *compression;
    auto block_size = image::parse_block_size(arguments.block_size);
    if (!block_size) return fail(std::move(block_size.error()));
    options.block_size = *block_size;
    if (arguments.base != "host")
        return fail_input("not a base that this version knows: '" + arguments.base + "'", {}, {},
                          "Give --base host, or leave it out.");
    for (const auto& [given, option] : {std::pair{&arguments.pre_install, &options.pre_install},
                                        std::pair{&arguments.post_install, &options.post_install},
                                        std::pair{&arguments.environ_script, &options.environ_script},
                                        std::pair{&arguments.log_file, &options.log_copy}}) {
        auto file = absolute_file(*given);
        if (!file) return fail(std::move(file.error()));
        *option = *file;
    }
    std::error_code failed;
    if (!options.staging_parent.empty() && !fs::is_directory(options.staging_parent, failed))
        return fail_input("the staging directory does not exist", {}, options.staging_parent.string(),
                          "Give --tmpdir an existing directory.");
    const fs::path program = fs::read_symlink("/proc/self/exe", failed);
    options.libexec = program.parent_path().parent_path() / "libexec/containerize";
    options.share = program.parent_path().parent_path() / "share/containerize";
    for (const auto& part :
         {options.libexec / "launcher", options.libexec / "session", options.share / "python"})
        if (!fs::exists(part, failed))
            return fail({.what = "this containerize is not installed completely",
                         .why = "a part is missing",
                         .where = part.string(),
                         .hint = "Install it again with `cmake --install`."});
    for (const auto& file : arguments.requirements)
        options.conda.requirements.emplace_back(file);
    options.conda.cuda = arguments.cuda;
    options.conda.offline = arguments.offline;
    options.conda.use_config = !arguments.no_config;
    options.conda.allow_defaults = arguments.allow_defaults;
    options.conda.constraints = !arguments.no_constraints;
    options.umask_bits = umask(0);
    umask(options.umask_bits);
    return options;
}

// What would be installed, without a prefix.
Result<int> show_plan(const install::BuildOptions& options, bool as_json) {
    auto plan = install::dry_run(options);
    if (!plan) return fail(std::move(plan.error()));
    if (as_json) {
        nlohmann::json packages = nlohmann::json::array();
        for (const auto& record : *plan)
            packages.push_back(conda::to_json(record));
        fmt::print("{}\n", packages.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
        return 0;
    }
    std::uint64_t bytes = 0;
    for (const auto& record : *plan) {
        fmt::print("{:<30} {:<15} {:<25} {}\n", record.name, record.version, record.build, record.channel);
        bytes += record.size;
    }
    fmt::print("{} packages, {}\n", plan->size(), human_bytes(bytes));
    return 0;
}

Result<int> run_new(const NewArguments& arguments, const std::string& command_line) {
    catch_interrupts();
    auto options = options_from(arguments, command_line);
    if (!options) return fail(std::move(options.error()));
    if (arguments.json && !arguments.dry_run)
        return fail_input("--json is for --dry-run", {}, {}, "Give both, or neither.");
    if (arguments.dry_run) return show_plan(*options, arguments.json);
    if (options->prefix.empty())
        return fail_input("--prefix is missing", "it says where the installation goes", {},
                          "Give --prefix DIR.");
    auto built = install::build(*options);
    if (!built) return fail(std::move(built.error()));
    if (!arguments.quiet)
        fmt::print("Ready: {} ({} files, {} image, {} commands) in {}.\nNext:  export PATH={}:$PATH\n",
                   built->prefix.string(), human_count(built->files), human_bytes(built->image_bytes),
                   human_count(built->commands), human_seconds(built->seconds),
                   shell_quoted((built->prefix / "bin").string()));
    return 0;
}

} // namespace

namespace {

void add_conda_options(CLI::App& command, NewArguments& arguments) {
    command
        .add_option("-r,--requirements", arguments.requirements,
                    "Requirements for pip, beside an environment.yml")
        ->type_name("FILE");
    command
        .add_option("--cuda", arguments.cuda,
                    "CUDA version of the nodes that it is for (default: this machine's, if any)")
        ->type_name("X.Y");
    command.add_flag("--offline", arguments.offline, "Use what the caches have, never the network");
    command.add_flag("--no-config", arguments.no_config, "Ignore .condarc files and CONDA_ variables");
    command.add_flag("--allow-defaults", arguments.allow_defaults,
                     "Use Anaconda's channels, under their terms of service");
    command.add_flag("--no-constraints", arguments.no_constraints, "Let pip replace what conda installed");
    command.add_flag("--dry-run", arguments.dry_run, "Show what would be installed");
    command.add_flag("--json", arguments.json, "With --dry-run: as JSON");
    // Habits of tykky's users; there is one solver here, and uv is used where it is found.
    command.add_flag("--mamba", arguments.mamba, "Accepted; does nothing");
    command.add_flag("--uv", arguments.uv, "Accepted; uv is used where it is found");
}

} // namespace

void add_new(CLI::App& app, Action& chosen, const std::string& command_line) {
    auto* command =
        app.add_subcommand("new", "Build an installation from a conda environment or a requirements file");
    const auto arguments = std::make_shared<NewArguments>();
    command->footer(footer);
    command
        ->add_option("SPEC", arguments->spec,
                     "A conda environment.yml, a lock file, or a pip requirements file")
        ->required();
    command->add_option("--prefix", arguments->prefix, "Directory of the installation; absent or empty")
        ->type_name("DIR");
    add_conda_options(*command, *arguments);
    command
        ->add_option("--python", arguments->python,
                     "Interpreter, as a path or a version (default: python3 on PATH)")
        ->type_name("PATH|X.Y");
    command
        ->add_option("--installer", arguments->installer, "auto (uv where it is found, else pip), pip or uv")
        ->type_name("NAME")
        ->capture_default_str();
    command->add_flag("--bundle-python", arguments->bundle_python,
                      "Copy the interpreter and its standard library into the image");
    command
        ->add_option("--pre-install", arguments->pre_install, "Script to run before packages are installed")
        ->type_name("FILE");
    command
        ->add_option("--post-install", arguments->post_install, "Script to run after packages are installed")
        ->type_name("FILE");
    command
        ->add_option("--environ", arguments->environ_script,
                     "Script whose effect on the environment every launch gets")
        ->type_name("FILE");
    command
        ->add_option("--wrapper-paths", arguments->wrapper_paths,
                     "More directories with commands, below the prefix")
        ->delimiter(',')
        ->type_name("DIR,...");
    command->add_option("--base", arguments->base, "Root filesystem that programs see")
        ->type_name("BASE")
        ->capture_default_str();
    command
        ->add_option("--jobs", arguments->jobs, "Parallel workers (default: what this job or login may use)")
        ->check(CLI::Range(1, 1024))
        ->type_name("N");
    command->add_option("--compression", arguments->compression, "zstd:LEVEL (1 to 22), lz4 or none")
        ->type_name("KIND")
        ->capture_default_str();
    command->add_option("--block-size", arguments->block_size, "Block size of the image, 4K to 1M")
        ->type_name("SIZE")
        ->capture_default_str();
    command
        ->add_option("--tmpdir", arguments->staging_parent,
                     "Node-local directory to build in (default: $TMPDIR or /tmp)")
        ->type_name("DIR");
    command->add_flag("--force", arguments->force, "Replace the installation that is there");
    auto* verbose = command->add_flag("-v,--verbose", arguments->verbose, "Show what every program says");
    command->add_flag("-q,--quiet", arguments->quiet, "Show warnings and errors only")->excludes(verbose);
    command->add_option("--log", arguments->log_file, "Write the log to this file too")->type_name("FILE");
    command->callback([&chosen, arguments, command_line] {
        chosen = [arguments, command_line] { return run_new(*arguments, command_line); };
    });
}

} // namespace containerize::cli

#include "cli/command.h"
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
    std::vector<std::string> wrapper_paths;
    unsigned jobs = 0;
    bool bundle_python = false, force = false, verbose = false, quiet = false;
};

constexpr const char* footer = R"(Examples:
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
    options.umask_bits = umask(0);
    umask(options.umask_bits);
    return options;
}

Result<int> run_new(const NewArguments& arguments, const std::string& command_line) {
    catch_interrupts();
    auto options = options_from(arguments, command_line);
    if (!options) return fail(std::move(options.error()));
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

void add_new(CLI::App& app, Action& chosen, const std::string& command_line) {
    auto* command = app.add_subcommand("new", "Build an installation from a requirements file");
    const auto arguments = std::make_shared<NewArguments>();
    command->footer(footer);
    command->add_option("SPEC", arguments->spec, "A pip requirements file")->required();
    command->add_option("--prefix", arguments->prefix, "Directory of the installation; absent or empty")
        ->required()
        ->type_name("DIR");
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

#include "build/provide_environment.h"
#include "cli/build_arguments.h"
#include "cli/command.h"
#include "cli/configured.h"
#include "cli/exec.h"
#include "cli/help.h"
#include "conda/cache_directory.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/printable.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>

namespace containerize::cli {

namespace {

struct ExecArguments : BuildArguments {
    std::vector<std::string> with, files, channels;
    bool conda = false, refresh = false;
};

constexpr const char* exec_examples = R"(Examples:
  containerize exec --with ruff -- ruff check .
  containerize exec --with 'numpy<2' --with pandas --python 3.12 -- python script.py
  containerize exec --with-requirements requirements.txt -- python script.py
  containerize exec --conda -c conda-forge --with samtools -- samtools --version

The environment is kept and used again for the same packages and options, until `exec_limit` of the configuration
is reached. `containerize cache list` shows all of them. To run a command in an installation, use `containerize
run`.)";

/// The umask of the shell, which the configuration changes for builds.
class KeptUmask {
public:
    KeptUmask() : bits_(umask(0)) { umask(bits_); }
    KeptUmask(const KeptUmask&) = delete;
    KeptUmask& operator=(const KeptUmask&) = delete;
    ~KeptUmask() { umask(bits_); }

private:
    mode_t bits_;
};

/// Whether it names a file that lists packages. Archives of packages can be given.
bool is_list(const fs::path& package) {
    constexpr auto endings = std::to_array<std::string_view>({".txt", ".yml", ".yaml", ".toml", ".lock"});
    return std::ranges::find(endings, package.extension().string()) != endings.end() &&
           quiet::is_regular_file(package);
}

Status check_words(const ExecArguments& arguments, const std::vector<std::string>& program) {
    for (const auto& package : arguments.with)
        if (is_list(package))
            return fail_input("--with takes a package, and this is a file", {}, printable_line(package),
                              "Give a requirements file with --with-requirements. For other files, create an "
                              "installation with `containerize new`.");
    if (arguments.with.empty() && arguments.files.empty())
        return fail_input(
            "no package is given", {}, {},
            "Give it with --with. To run a command in an installation, use `containerize run`.");
    if (program.empty())
        return fail_input("no command is given", {}, {},
                          "Give it after --, as in:  containerize exec --with ruff -- ruff check .");
    if (arguments.conda && !arguments.python.empty())
        return fail_input("--python cannot be combined with --conda",
                          "a conda environment has its own Python", {},
                          "Request a version with --with, such as --with python=3.12.");
    return {};
}

Result<build::CommandRequest> request_from(const ExecArguments& arguments) {
    build::CommandRequest request{.packages = arguments.with,
                                  .conda = arguments.conda,
                                  .channels = arguments.channels,
                                  .exclude_newer = arguments.exclude_newer};
    for (const auto& file : arguments.files) {
        request.requirements.push_back(TRY(resolve(file)));
        if (!quiet::is_regular_file(request.requirements.back()))
            return fail_input("cannot read the requirements",
                              quiet::exists(request.requirements.back()) ? "this is not a file"
                                                                         : "there is no such file",
                              printable_line(file), "Give --with-requirements a file that you can read.");
        if (request.requirements.back().string().find_first_of("\r\n") != std::string::npos)
            return fail_input("the path of the requirements has a line break", {}, printable_line(file),
                              "Rename the file or its directory.");
    }
    return request;
}

Result<build::ClaimedEnvironment> provide(const ExecArguments& arguments, const std::string& command_line) {
    const auto request = TRY(request_from(arguments));
    const KeptUmask kept;
    const auto configured = TRY(Configured::read());
    const auto options = TRY(options_from(arguments, command_line, configured));
    const auto cache = TRY(conda::cache_directory(current_environment(), options.site.cache));
    const build::ProvideOptions where{.directory = TRY(configured.exec_environments(cache)),
                                      .limit = TRY(configured.exec_limit()),
                                      .anew = arguments.refresh};
    return build::provide_environment(request, options, where);
}

/// The command, and what it starts, inherit the lock: the environment stays as long as it is in use. Scripts
/// choose small numbers for their own files.
void pass_on(const Fd& lock) {
    constexpr int large = 900;
    constexpr int smallest = 10;
    if (fcntl(lock.get(), F_DUPFD, large) < 0) fcntl(lock.get(), F_DUPFD, smallest);
}

Result<int> run_exec(const ExecArguments& arguments, const Call& call) {
    TRY(check_words(arguments, call.program));
    const auto environment = TRY(provide(arguments, call.line));
    if (interrupted()) return fail_interrupted();
    pass_on(environment.lock.file);
    return become_inside(environment.prefix(), "_debug_exec", call.program);
}

} // namespace

void add_exec(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("exec", "Run a command in an environment that is made for it");
    const auto arguments = std::make_shared<ExecArguments>();
    take_program(*command, "The command and its arguments");
    command->option_defaults()->group("Packages");
    command
        ->add_option("--with", arguments->with,
                     "A package of the environment: a pip requirement, or with --conda a match specification")
        ->allow_extra_args(false)
        ->type_name("SPEC");
    auto* files = command
                      ->add_option("--with-requirements", arguments->files,
                                   "A pip requirements file, in addition to the packages")
                      ->allow_extra_args(false)
                      ->type_name("FILE");
    auto* conda = command->add_flag("--conda", arguments->conda, "Take the packages from conda channels")
                      ->excludes(files);
    command
        ->add_option("-c,--channel", arguments->channels, "A conda channel, instead of the configured ones")
        ->allow_extra_args(false)
        ->needs(conda)
        ->type_name("CHANNEL");
    add_configured(*command, config::Key::python, arguments->python)->type_name("PYTHON");
    add_configured(*command, config::Key::installer, arguments->installer)->type_name("NAME");
    add_solve_options(*command, *arguments);
    command->add_flag("--refresh", arguments->refresh, "Build the environment again, even if there is one");
    add_log_options(*command, *arguments);
    command->footer(exec_examples);
    on(*command, call, [&call, arguments] { return run_exec(*arguments, call); });
}

} // namespace containerize::cli

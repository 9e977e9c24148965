#include "cli/command.h"
#include "cli/tykky.h"
#include "core/interrupt.h"
#include "util/process.h"
#include "util/redact.h"
#include "util/similar_names.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace {

using namespace containerize;

constexpr const char* footer = R"(A first installation:
  containerize new --prefix ~/envs/demo requirements.txt
  export PATH=~/envs/demo/bin:$PATH
  python -c 'import numpy; print(numpy.__version__)'

`containerize COMMAND --help` explains each command.)";

int report(const Error& error) {
    std::fprintf(stderr, "containerize: %s\n", redacted(to_string(error)).c_str());
    if (interrupted()) return 128 + interrupt_signal();
    return error.fault == Fault::input ? 2 : 1;
}

std::string typed(int argc, char** argv) {
    std::vector<std::string> words = {"containerize"};
    words.insert(words.end(), argv + std::min(argc, 1), argv + argc);
    return redacted_command(words);
}

// Separated before CLI11 parses, which would take the program's options for ours and split "[a,b]" into two.
std::vector<std::string> program_after_mark(int argc, char** argv) {
    constexpr std::array<std::string_view, 5> with_program = {"update", "dev", "profile", "launch", "job"};
    if (argc < 2 || std::ranges::find(with_program, argv[1]) == with_program.end()) return {};
    const auto mark = std::find_if(argv, argv + argc, [](std::string_view word) { return word == "--"; });
    return mark == argv + argc ? std::vector<std::string>() : std::vector<std::string>(mark + 1, argv + argc);
}

std::vector<std::string> names_of_commands(const CLI::App& app) {
    std::vector<std::string> names;
    for (const auto* command : app.get_subcommands({}))
        names.push_back(command->get_name());
    return names;
}

std::vector<std::string> names_of_options(const CLI::App& command) {
    std::vector<std::string> names;
    for (const auto* option : command.get_options())
        for (const auto& name : option->get_lnames())
            names.push_back("--" + name);
    return names;
}

std::string unknown(const std::string& argument, const CLI::App& app) {
    const auto chosen = app.get_subcommands();
    const bool is_option = argument.starts_with("-");
    if (!is_option && !chosen.empty()) return "unknown argument: " + argument;
    const auto names =
        is_option ? names_of_options(chosen.empty() ? app : *chosen.front()) : names_of_commands(app);
    std::string text = (is_option ? "unknown argument: " : "unknown command: ") + argument;
    const auto similar = similar_names(names, argument.substr(0, argument.find('=')));
    for (const auto& name : similar)
        text += (&name == &similar.front() ? "; did you mean " : " or ") + name;
    return text + (similar.empty() ? "" : "?");
}

/// Rewords CLI11's "Could not convert: N = -1".
std::string reworded(const std::string& said) {
    constexpr std::string_view start = "Could not convert: ";
    const auto equals = said.find(" = ");
    if (!said.starts_with(start) || equals == std::string::npos) return said;
    return "invalid value for " + said.substr(start.size(), equals - start.size()) + ": '" +
           said.substr(equals + 3) + "'";
}

// A one-line message. A misspelt argument is named first, as it often causes missing ones.
std::string explain(const CLI::ParseError& problem, const CLI::App& app) {
    std::string what = reworded(problem.what());
    for (const auto& argument : app.remaining(true))
        if (argument != "--") {
            what = unknown(argument, app);
            break;
        }
    const auto chosen = app.get_subcommands();
    if (!chosen.empty() && chosen.front()->get_name() == "update") what += "; give a command to run after --";
    return what + " (see `containerize " + (chosen.empty() ? "" : chosen.front()->get_name() + " ") +
           "--help`)";
}

int run(int argc, char** argv) {
    remember_secrets_of(current_environment());
    remember_secrets_of(std::vector<std::string>(argv, argv + argc));
    const std::string_view called = argc > 0 ? argv[0] : "";
    if (const auto name = called.substr(called.rfind('/') + 1); cli::is_name_of_tykky(name))
        return cli::run_as_tykky(name, argc, argv);
    CLI::App app(
        "Turns a Python environment into one image file, with wrappers that run its programs as if it were a "
        "directory.",
        "containerize");
    app.set_version_flag("--version", "containerize " CONTAINERIZE_VERSION);
    app.footer(footer);
    app.require_subcommand(0, 1);
    app.get_formatter()->column_width(34);
    cli::Action chosen;
    cli::add_new(app, chosen, typed(argc, argv));
    cli::add_wrap_install(app, chosen, typed(argc, argv));
    cli::add_wrap_container(app, chosen, typed(argc, argv));
    cli::add_import_tykky(app, chosen, typed(argc, argv));
    const auto program = program_after_mark(argc, argv);
    cli::add_update(app, chosen, typed(argc, argv), program);
    cli::add_dev(app, chosen, program);
    cli::add_log(app, chosen);
    cli::add_rollback(app, chosen, typed(argc, argv));
    cli::add_squash(app, chosen, typed(argc, argv));
    cli::add_run(app, chosen, {argv, argv + argc});
    cli::add_shell(app, chosen);
    cli::add_inspect(app, chosen);
    cli::add_profile(app, chosen, program);
    cli::add_stats(app, chosen);
    cli::add_check(app, chosen);
    cli::add_doctor(app, chosen);
    cli::add_cache(app, chosen);
    cli::add_base(app, chosen);
    cli::add_activate(app, chosen);
    cli::add_config(app, chosen);
    cli::add_launch(app, chosen, program);
    cli::add_job(app, chosen, program);
    cli::add_stage(app, chosen);
    cli::add_kernel(app, chosen);
    try {
        app.parse(program.empty() ? argc : argc - static_cast<int>(program.size()) - 1, argv);
    } catch (const CLI::ParseError& problem) {
        if (problem.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(problem);
        std::fprintf(stderr, "containerize: %s\n", redacted(explain(problem, app)).c_str());
        return 2;
    }
    hide_secrets_of_process(argc, argv);
    if (!chosen) {
        std::fputs(app.help().c_str(), stdout);
        return 0;
    }
    const auto done = chosen();
    return done ? *done : report(done.error());
}

int run_and_report(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::system_error& failure) { // an unexpected system error
        const bool scarce = failure.code() == std::errc::resource_unavailable_try_again; // e.g. a thread
        std::fprintf(stderr, "containerize: a system call failed: %s\n%s", redacted(failure.what()).c_str(),
                     scarce ? "A limit of processes or memory is too low. `ulimit -a` shows the limits.\n"
                            : "");
        return 1;
    } catch (const std::exception& bug) {
        std::fprintf(stderr, "containerize: this is a bug in containerize: %s\n",
                     redacted(bug.what()).c_str());
        return 1;
    }
}

constexpr std::array no_memory = std::to_array("containerize: there is not enough memory\n");

/// The terminate handler, for exceptions in threads. The cleanup process cleans up as after a kill.
[[noreturn]] void end_of_thread() {
    try {
        if (const auto problem = std::current_exception()) std::rethrow_exception(problem);
    } catch (const std::bad_alloc&) {
        [[maybe_unused]] const auto written = write(STDERR_FILENO, no_memory.data(), no_memory.size() - 1);
        _exit(1);
    } catch (...) { // a bug
        std::abort();
    }
    std::abort();
}

} // namespace

int main(int argc, char** argv) {
    std::set_terminate(end_of_thread);
    try {
        return run_and_report(argc, argv);
    } catch (const std::exception&) { // no memory even for composing a message
        std::fputs(no_memory.data(), stderr);
        return 1;
    }
}

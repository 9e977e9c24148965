// The launcher: every file in an installation's bin is this program. It enters the session in which the
// installation's image is mounted, starting one if there is none, and executes the same path by which it was
// called: inside, that is the real program. On the warm path it forks nothing, and parses nothing but the
// session's launch plan.
#include "core/exit_code.h"
#include "core/ownership.h"
#include "core/printable.h"
#include "core/text.h"
#include "launch/carried_call.h"
#include "launch/control_message.h"
#include "launch/engine.h"
#include "launch/environment.h"
#include "launch/launch_plan.h"
#include "launch/launch_rules.h"
#include "launch/namespace.h"
#include "launch/root_key.h"
#include "launch/session_state.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace containerize;
using namespace containerize::launch;

/// A session may end, or make way for a new one, while we are about to enter it.
constexpr int attempts = 20;

void say(const std::string& text) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

[[noreturn]] void die(const std::string& message, int code = exit_failure) {
    say("containerize: " + message + "\n");
    _exit(code);
}

[[noreturn]] void die(const Error& error) {
    die(to_string(error));
}

struct stat own_file() {
    struct stat self {};
    if (stat("/proc/self/exe", &self) != 0)
        die(std::string("cannot examine /proc/self/exe: ") + std::strerror(errno));
    return self;
}

std::string own_path() {
    std::array<char, 8192> buffer;
    const auto size = readlink("/proc/self/exe", buffer.data(), buffer.size());
    if (size <= 0) die("cannot determine which program this is: /proc is not mounted");
    std::string path(buffer.data(), static_cast<std::size_t>(size));
    // The kernel's mark for a program that was replaced after it was started.
    static constexpr std::string_view deleted = " (deleted)";
    if (path.ends_with(deleted) && access(path.c_str(), F_OK) != 0) path.resize(path.size() - deleted.size());
    return path;
}

/// Executes the real program instead if that is at our path by now: another call from inside may have mounted
/// the image after the kernel opened this wrapper.
void give_way_to_program(const std::string& program, char** argv) {
    const struct stat self = own_file();
    struct stat now {};
    if (stat(program.c_str(), &now) != 0) return;
    if (self.st_dev == now.st_dev && self.st_ino == now.st_ino) return;
    // By the path of the call, which may be a venv's link.
    std::array<char, PATH_MAX> real;
    const auto* executed = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    const bool is_ours =
        executed != nullptr && realpath(executed, real.data()) != nullptr && program == real.data();
    execve(is_ours ? executed : program.c_str(), argv, environ);
}

/// Dies unless `directory`/`name` was made by whoever made this program.
void check_made_with_us(const std::string& directory, const std::string& name, const struct stat& file,
                        const struct stat& self) {
    struct stat info {};
    if (stat(directory.c_str(), &info) != 0) die("cannot examine " + directory + ": " + std::strerror(errno));
    if (const char* why = why_foreign(info, file, self.st_uid))
        die(directory + "/" + name + ": not used by " + own_path() + ": " + why +
            "\nAll files of an installation must belong to one user, or to the group of its directory, and "
            "nobody else may have write permission.");
}

// Uses the first manifest above the program. In a directory like /tmp it may be anyone's: then this dies.
void find_prefix(Call& call, char** argv) {
    struct stat manifest {};
    for (std::string directory = parent_of(parent_of(call.program));; directory = parent_of(directory)) {
        if (stat((directory + "/" + manifest_name).c_str(), &manifest) == 0) {
            check_made_with_us(directory, manifest_name, manifest, call.self);
            call.prefix = directory;
            call.identity = manifest_identity(manifest);
            return;
        }
        if (directory == "/") break;
    }
    give_way_to_program(call.program, argv);
    die(call.program +
        ": this is a wrapper of an installation, but no directory above it contains containerize.json");
}

/// The program in an installation's libexec for all that the launcher does not do itself.
std::string session_program(const Call& call) {
    std::string program = call.prefix + "/" + session_program_file();
    struct stat info {};
    if (stat(program.c_str(), &info) != 0) die("cannot start " + program + ": " + std::strerror(errno));
    const auto name = program.rfind('/') + 1;
    check_made_with_us(parent_of(program), program.substr(name), info, call.self);
    return program;
}

Call understand_call(char** argv) {
    Call call;
    call.program = own_path();
    call.self = own_file();
    find_prefix(call, argv);
    call.root = root_key(call.prefix);
    choose_target(call, reinterpret_cast<const char*>(getauxval(AT_EXECFN)), argv[0]);
    return call;
}

// Lets a container runtime run the program: the session program knows how. Inside, the
// runtime executes this launcher again (resume_call).
[[noreturn]] void use_container_runtime(const Call& call, char** argv, std::string native_failure = {}) {
    std::vector<std::string> words = {session_program(call),
                                      "--container",
                                      call.prefix,
                                      call.program,
                                      call.target,
                                      call.through_prefix ? "1" : "0",
                                      std::move(native_failure)};
    execve(words.front().c_str(), pointers_to(words, argv).data(), environ);
    die("cannot execute " + words.front() + ": " + std::strerror(errno));
}

// Another engine may succeed where the native one fails, unless the native one was insisted on.
[[noreturn]] void give_up_session(const Call& call, char** argv, const Error& error) {
    if (error.fault == Fault::engine && !insists_on_native()) use_container_runtime(call, argv, error.what);
    die(error);
}

// Reads the file. Called before the lock is taken: a filesystem that hangs should block us where nobody waits
// for us.
void touch(const std::string& file) {
    const Fd opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    std::array<char, 4096> buffer; // the stack may be small
    while (opened && read(opened.get(), buffer.data(), buffer.size()) > 0) {
    }
}

// Returns what the session says when it is ready or has failed.
std::string wait_for_session(const Fd& reader) {
    std::string answer;
    std::array<char, 4096> buffer;
    // Read up to a NUL: processes that the session has started hold the pipe, too.
    while (!answer.ends_with('\0')) {
        const auto got = read(reader.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        answer.append(buffer.data(), static_cast<std::size_t>(got));
    }
    if (answer.ends_with('\0')) answer.pop_back();
    return answer;
}

// Runs the session program and waits until the session can be entered.
Status start_session(const StateDirectory& state, const Call& call) {
    const std::string program = session_program(call);
    touch(program);
    const auto lock = TRY(lock_starts(state));
    const Fd given(fcntl(lock.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    // Another rank may have started it while we waited for the lock.
    if (find_session(state, call.root)) return {};

    const auto names = session_names(own_identity(call.root));
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) die("cannot create a pipe: " + std::string(std::strerror(errno)));
    Fd reader(ends[0]);
    Fd writer(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
    // The lock is its standard input: even if we are killed meanwhile, nobody starts a second session.
    posix_spawn_file_actions_adddup2(&actions, given.get(), STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    std::vector<std::string> arguments = {program, state.path, names.shared, names.of_login, call.prefix};
    auto variables = variables_of_session();
    pid_t pid = 0;
    const int failed = posix_spawn(&pid, program.c_str(), &actions, nullptr, pointers_to(arguments).data(),
                                   pointers_to(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) die("cannot start " + program + ": " + std::strerror(failed));
    writer.reset();
    const auto answer = wait_for_session(reader);
    // ECHILD if the caller ignores SIGCHLD: then the kernel reaps it.
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (answer == "ok" || answer == superseded_answer) return {};
    if (answer.starts_with("ok\n")) {
        say(printable(answer.substr(3)) + "\n");
        return {};
    }
    return fail(error_of_answer(answer.empty() ? "the session's process died before it was ready" : answer));
}

/// The working directory, by name and by descriptor: the name may lead into the image; the descriptor still
/// works if the directory was deleted or cannot be reached by name.
class Directory {
public:
    Directory() : named_(getcwd(name_.data(), name_.size()) != nullptr && name_[0] == '/') {}
    /// `leads_out`: the descriptor may be outside of the new root, so only the name is used.
    void enter(bool leads_out = false) const {
        if (named_ && chdir(name_.data()) == 0) return;
        if (!leads_out && fchdir(open_.get()) == 0) return;
        say(std::string("containerize: the working directory ") + (named_ ? name_.data() : "") +
            " cannot be entered here, so the program starts in /\n");
    }

private:
    Fd open_{open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)};
    std::array<char, PATH_MAX> name_{};
    bool named_;
};

// Moves this process into the session, in the same working directory.
void enter(const SessionHandle& session, bool has_base) {
    const Directory before; // setns() changes to the root directory
    if (const int error_number = session.namespaces.enter(); error_number != 0)
        die("cannot enter the session of process " + std::to_string(session.supervisor) + ": " +
            std::strerror(error_number));
    before.enter(has_base);
}

// Returns inside the session, with the plan of an image that is mounted and current.
LaunchPlan enter_session(Call& call, char** argv) {
    auto state = open_state_directory();
    if (!state) die(state.error());
    for (int attempt = 0; attempt < attempts; ++attempt) {
        const auto session = find_session(*state, call.root);
        if (!session) {
            if (auto started = start_session(*state, call); !started)
                give_up_session(call, argv, started.error());
            continue;
        }
        auto plan = read_plan(*session, call.prefix);
        if (!plan || (!session->inside && plan->identity != call.identity)) {
            const Directory before;
            auto answer = request_mount(*session, call.prefix);
            if (session->inside) before.enter(); // the session may have got a new root
            if (!answer) give_up_session(call, argv, answer.error());
            if (*answer == MountAnswer::stale) continue;
            plan = read_plan(*session, call.prefix);
            if (!plan) continue;
        }
        // The session's lock is released on return: from now on, this process in its namespaces keeps it
        // alive.
        call.inside = session->inside;
        if (!call.inside) enter(*session, !plan->root.empty());
        return *plan;
    }
    die("could not enter a session in " + std::to_string(attempts) + " attempts; see " + state->path);
}

[[noreturn]] void refuse_change(const Call& call, char** argv) {
    std::string command = call.name;
    for (++argv; *argv != nullptr; ++argv)
        command.append(" ").append(*argv);
    die("this installation is read-only, so `" + command + "` cannot change it.\n" +
        "To change it for all its users:  containerize update " + call.prefix + " -- " + command + "\n" +
        "For packages of your own on top:  " + call.prefix +
        "/bin/python -m venv --system-site-packages VENV, "
        "then VENV/bin/pip install ...\n" +
        "To develop in it:  containerize dev " + call.prefix);
}

/// What is executed, by any wrapper.
struct Launch {
    const Call& call;
    Variables variables;
    std::vector<std::string> scripts = {}; ///< to source first
};

// A text file without "#!", which every shell executes as a script of its own.
void execute_as_text(const std::string& path, char** argv, Launch& launch) {
    std::vector<std::string> words = {"sh", path};
    execve("/bin/sh", pointers_to(words, argv + 1).data(), launch.variables.pointers().data());
}

// Waits until the session has mounted the image again, as it does before Linux 6.9 if its server was killed.
void wait_for_new_mount(const Call& call) {
    const auto state = open_state_directory();
    if (!state) return;
    const auto session = find_session(*state, call.root);
    if (session && session->inside) std::ignore = request_mount(*session, call.prefix);
}

[[noreturn]] void execute_now(const std::string& path, char** argv, Launch& launch) {
    execve(path.c_str(), argv, launch.variables.pointers().data());
    if (errno == ENOTCONN || errno == ECONNABORTED) {
        wait_for_new_mount(launch.call);
        execve(path.c_str(), argv, launch.variables.pointers().data());
    }
    if (errno == ENOEXEC) execute_as_text(path, argv, launch);
    const int error_number = errno;
    // "bin" has links to commands in other directories, which the image need not have: execute the command
    // itself.
    if (error_number == ENOENT && path == launch.call.target && path != launch.call.program &&
        access(path.c_str(), F_OK) != 0)
        execve(launch.call.program.c_str(), argv, launch.variables.pointers().data());
    if (error_number == ENOENT && access(path.c_str(), F_OK) != 0)
        die(path + " is not in the image of " + launch.call.prefix, exit_not_found);
    die("cannot execute " + path + ": " + std::strerror(error_number), exit_cannot_execute);
}

// Lets a shell source the scripts and then execute `path`: what the scripts change depends on the caller, so
// it could not be recorded at build time. They get no arguments, which are the program's.
[[noreturn]] void execute_after_scripts(std::string path, char** argv, Launch& launch) {
    // The same fallback as in execute_now(), which here executes the shell.
    if (path == launch.call.target && access(path.c_str(), F_OK) != 0) path = launch.call.program;
    std::vector<std::string> words = {
        "bash", "--noprofile", "--norc", "-c", code_to_source(launch.scripts), "containerize", argv[0], path};
    // The user's start-up file may call a wrapper, which would start a shell again, endlessly.
    launch.variables.unset("BASH_ENV");
    execute_now("/bin/bash", pointers_to(words, argv + 1).data(), launch);
}

[[noreturn]] void execute(const std::string& path, char** argv, Launch& launch) {
    if (launch.scripts.empty()) execute_now(path, argv, launch);
    execute_after_scripts(path, argv, launch);
}

// `_debug_exec CMD ARGS...`: any command, searched on the PATH inside.
[[noreturn]] void execute_command(char** argv, Launch& launch) {
    const std::string_view command = argv[0];
    if (command.find('/') != std::string_view::npos) execute(argv[0], argv, launch);
    if (const auto found = find_command(command, launch.variables); !found.empty())
        execute(found, argv, launch);
    die(std::string(command) + ": command not found", exit_not_found);
}

// The two wrappers that are no programs of the image; returns for all others.
void run_debug_command(char** argv, Launch& launch) {
    if (launch.call.name == "_debug_exec") {
        if (argv[0] == nullptr || argv[1] == nullptr)
            die("usage: _debug_exec COMMAND [ARGUMENT...]", exit_usage);
        execute_command(argv + 1, launch);
    }
    if (launch.call.name == "_debug_shell") {
        const char* shell = launch.variables.get("SHELL");
        std::vector<std::string> words = {shell != nullptr && access(shell, X_OK) == 0 ? shell : "/bin/sh"};
        execute(words.front(), pointers_to(words, argv + 1).data(), launch);
    }
}

// Inside: applies the installation's environment to the caller's variables, and executes the program.
[[noreturn]] void execute(Call call, const LaunchPlan& plan, char** argv, Variables variables) {
    if (call.through_prefix && would_change_installation(call.name, argv)) refuse_change(call, argv);
    Launch launch{.call = call, .variables = std::move(variables)};
    // Not for calls from inside: once the image is mounted, these find the program itself and no wrapper, so
    // the first of them must not get another environment.
    if (!call.inside) launch.scripts = prepare_environment(launch.variables, call, plan);
    run_debug_command(argv, launch);

    // A path that bypasses the mount (a descriptor, a hard link elsewhere) would start this program again,
    // endlessly.
    if (is_file(call.target.c_str(), call.self) && is_file((call.target = call.program).c_str(), call.self))
        die("the image of " + call.prefix + " is not mounted at the path of this program",
            exit_cannot_execute);
    execute(call.target, argv, launch);
}

// Continues a launch inside the container that was started for it.
[[noreturn]] void resume(CarriedCall carried) {
    Call call{.program = std::move(carried.program),
              .prefix = carried.plan.prefix,
              .target = std::move(carried.target),
              .through_prefix = carried.through_prefix,
              .self = own_file()};
    call.name = call.target.substr(call.target.rfind('/') + 1);
    execute(std::move(call), carried.plan, pointers_to(carried.arguments).data(),
            Variables(pointers_to(carried.environment).data()));
}

} // namespace

int main(int argc, char** argv) {
    // Kernels before 5.18 allow that.
    if (argc == 0) die("argv is empty, but it must contain the program's name", exit_usage);
    auto carried = resume_call();
    if (!carried) die(carried.error());
    if (*carried) resume(std::move(**carried));

    Call call = understand_call(argv);
    const auto insisted = engine_of_environment();
    if (!insisted) die(to_string(insisted.error()), exit_usage);
    if (is_container_runtime(*insisted)) use_container_runtime(call, argv);
    const LaunchPlan plan = enter_session(call, argv);
    execute(std::move(call), plan, argv, Variables(environ));
}

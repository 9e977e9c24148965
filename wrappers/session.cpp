// libexec/containerize-session-FORMAT of an installation: becomes the session, a container runtime, or that
// runtime's FUSE server. Started by launchers or a container runtime, never by hand. As
// bin/containerize-rank, it is that program.
#include "session/session.h"

#include "container/container.h"
#include "core/exit_code.h"
#include "launch/batch_job.h"
#include "launch/control_message.h"
#include "rank.h"

#include <cstdio>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace containerize;

int report(const Error& error) {
    const std::string line = "containerize: " + to_string(error) + "\n";
    std::fputs(line.c_str(), stderr);
    return exit_failure;
}

// Arguments: STATE KEY KEY-OF-LOGIN PREFIX
int start_session(char** arguments) {
    // Before the fork: afterwards, the job step's process is no ancestor of this one any more.
    Fd step = launch::step_process();
    // The launcher becomes the user's program, which must not find itself with a child that it never started.
    const pid_t pid = fork();
    if (pid < 0) {
        std::fputs(launch::answer_for(fail_errno("cannot start the session").error()).c_str(), stdout);
        return exit_failure;
    }
    if (pid > 0) return 0;
    // Standard output is the launcher's pipe.
    Fd report(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return session::run_session({.state_path = arguments[0],
                                 .key = arguments[1],
                                 .key_of_login = arguments[2],
                                 .prefix = arguments[3]},
                                std::move(step), std::move(report));
}

// Arguments: PREFIX PROGRAM TARGET THROUGH-PREFIX NATIVE-FAILURE ARGUMENT...
int start_container(char** arguments) {
    container::ContainerCall call{.prefix = arguments[0],
                                  .program = arguments[1],
                                  .target = arguments[2],
                                  .through_prefix = std::string_view(arguments[3]) == "1",
                                  .native_failure = arguments[4]};
    for (char** argument = arguments + 5; *argument != nullptr; ++argument)
        call.arguments.emplace_back(*argument);
    return report(container::run_in_container(call).error());
}

// Arguments: PREFIX DEVICE, and others that the runtime adds for a server
int serve(char** arguments) {
    auto served = container::serve_container(arguments[0], arguments[1]);
    return served ? *served : report(served.error());
}

} // namespace

int main(int argc, char** argv) {
    // One file for both, because every file counts on sites with many installations.
    if (argc > 0 && std::string_view(argv[0]).ends_with("containerize-rank")) return run_rank(argc, argv);
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode == "--container" && argc > 7) return start_container(argv + 2);
    if (mode == "--serve" && argc > 3) return serve(argv + 2);
    if (argc == 5) return start_session(argv + 1);
    std::fputs("The programs of an installation start containerize-session when they need it.\n", stderr);
    return exit_usage;
}

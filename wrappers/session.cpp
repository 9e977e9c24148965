// libexec/containerize-session of an installation: started by a launcher, never by hand.
#include "runtime/session.h"

#include <cstdio>

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fputs("containerize-session is started by the programs of an installation, when they need it.\n",
                   stderr);
        return 2;
    }
    // The launcher becomes the user's program: that must not find itself with a child that it never started.
    const pid_t pid = fork();
    if (pid != 0) return pid > 0 ? 0 : 1;
    // Standard output is the launcher's pipe.
    containerize::Fd report(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return containerize::runtime::run_session(
        {.state_path = argv[1], .key = argv[2], .prefix = argv[3], .inject = {}}, std::move(report));
}

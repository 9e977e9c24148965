#include "util/background.h"

#include "core/fd.h"

#include <fcntl.h>
#include <unistd.h>

namespace containerize {

void run_in_background(const std::function<void()>& work) {
    if (fork() != 0) return;
    setsid();
    if (const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC)); null)
        for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
            dup2(null.get(), stream);
    work();
    _exit(0);
}

} // namespace containerize

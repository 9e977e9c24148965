#include "cli/program.h"
#include "core/exit_code.h"
#include "util/redact.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace containerize;

int run_and_report(int argc, char** argv) {
    try {
        return cli::run_program(argc, argv);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::system_error& failure) { // an unexpected system error
        const bool scarce = failure.code() == std::errc::resource_unavailable_try_again; // e.g. a thread
        std::fprintf(stderr, "containerize: a system call failed: %s\n%s", redacted(failure.what()).c_str(),
                     scarce ? "A limit of processes or of memory is too low: `ulimit -a` shows them.\n" : "");
        return exit_failure;
    } catch (const std::exception& bug) {
        std::fprintf(stderr, "containerize: this is a bug in containerize: %s\n",
                     redacted(bug.what()).c_str());
        return exit_failure;
    }
}

constexpr std::array no_memory = std::to_array("containerize: there is not enough memory\n");

/// The terminate handler, for exceptions in threads. The clean-up process works as after a kill.
[[noreturn]] void end_of_thread() {
    try {
        if (const auto problem = std::current_exception()) std::rethrow_exception(problem);
    } catch (const std::bad_alloc&) {
        [[maybe_unused]] const auto written = write(STDERR_FILENO, no_memory.data(), no_memory.size() - 1);
        _exit(exit_failure);
    } catch (...) { // a bug
        std::abort();
    }
    std::abort();
}

/// Somebody may have closed standard streams. A file or socket that got such a number would be taken for the
/// stream.
void open_missing_streams() {
    int file = 0;
    while (file >= 0 && file <= STDERR_FILENO)
        file = open("/dev/null", O_RDWR);
    if (file > STDERR_FILENO) close(file);
}

} // namespace

int main(int argc, char** argv) {
    std::set_terminate(end_of_thread);
    // Somebody may have ignored it, and then nobody learns how a child ended.
    std::signal(SIGCHLD, SIG_DFL);
    open_missing_streams();
    try {
        return run_and_report(argc, argv);
    } catch (const std::exception&) { // no memory even for composing a message
        std::fputs(no_memory.data(), stderr);
        return exit_failure;
    }
}

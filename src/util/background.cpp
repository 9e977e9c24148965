#include "util/background.h"

#include "core/text.h"

#include <csignal>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <unistd.h>

namespace containerize {

namespace {

constexpr int low_priority = 10;

/// What posix_spawn() does in the child before it executes the program.
class Preparation {
public:
    Preparation() {
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
        for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
            posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, stream);
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
        posix_spawn_file_actions_addchdir_np(&actions, "/");
        posix_spawnattr_init(&attributes);
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setflags(&attributes,
                                 POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    Preparation(const Preparation&) = delete;
    Preparation& operator=(const Preparation&) = delete;
    ~Preparation() {
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }

    posix_spawn_file_actions_t actions{};
    posix_spawnattr_t attributes{};
};

} // namespace

Status start_in_background(const std::vector<std::string>& arguments, const Environment& environment) {
    std::vector<std::string> argv = {"containerize"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    std::vector<std::string> assignments;
    for (const auto& [name, value] : environment)
        assignments.push_back(name + "=" + value);
    const Preparation preparation;
    pid_t pid = -1;
    const int failed = posix_spawn(&pid, "/proc/self/exe", &preparation.actions, &preparation.attributes,
                                   pointers_to(argv).data(), pointers_to(assignments).data());
    if (failed != 0) return fail_errno("cannot start a process in the background", {}, failed);
    setpriority(PRIO_PROCESS, static_cast<id_t>(pid), low_priority);
    return {};
}

} // namespace containerize

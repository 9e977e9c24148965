// Runs code in another process, also as another user, which needs root.
#pragma once

#include "core/fd.h"

#include <string>

#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::test {

/// Returns what `work` returns in a process of its own.
template<class Work>
std::string in_process(const Work& work) {
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        const std::string text = work();
        const bool told = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
        _exit(told ? 0 : 1);
    }
    close(ends[1]);
    const Fd reader(ends[0]);
    std::string text;
    char buffer[4096];
    for (ssize_t got = 1; (got = read(reader.get(), buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<std::size_t>(got));
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? text : "the process failed: " + std::to_string(status);
}

/// The same, of that user and with that umask.
template<class Work>
std::string as_user(uid_t user, mode_t mask, const Work& work) {
    return in_process([&] {
        umask(mask);
        if (setgroups(0, nullptr) != 0 || setgid(user) != 0 || setuid(user) != 0) _exit(1);
        return work();
    });
}

} // namespace containerize::test

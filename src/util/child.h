// A running program and its process group: its own or, in the foreground, ours. For process.cpp and for
// programs that answer questions.
#pragma once

#include "core/error.h"
#include "util/process.h"

#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

namespace containerize {

class [[nodiscard]] Child {
public:
    struct Streams {
        int output, errors;
        int input = -1; ///< negative: /dev/null
    };
    /// Starts `program`, a path, with these descriptors. Without `streams`, it runs in the foreground: with
    /// our own streams and in our process group, so that the terminal's signals reach both. Fails if it
    /// cannot be executed. The program is killed when the thread that started it ends.
    static Result<Child> start(const Command& command, const std::string& program,
                               const Environment& environment, std::optional<Streams> streams);
    /// Starts a copy of this process in the foreground, which calls `work` and exits with what that returns.
    /// It is killed when the thread that started it ends.
    static Result<Child> start_copy(const std::function<int()>& work);
    Child(Child&& other) noexcept;
    Child& operator=(Child&&) = delete;
    /// Kills what is left of the group, including what the program left in the background.
    ~Child();

    void signal_group(int number) const; ///< in the foreground, only the program
    /// The exit code as in the shell, once the program has ended; nullopt before that. Does not wait.
    std::optional<int> ended();
    /// The same, but waits.
    int wait();
    /// Waits until the program has ended or `fd` is readable.
    void wait_for_end_or(int fd);

private:
    explicit Child(pid_t pid) : pid_(pid) {}
    [[nodiscard]] std::optional<int> ended(int options);
    pid_t pid_ = -1;
    pid_t guard_ = -1;
    std::optional<int> exit_code_;
};

} // namespace containerize

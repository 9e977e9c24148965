// A running program and its process group: its own or, in the foreground, ours. Used only by process.cpp.
#pragma once

#include "core/error.h"
#include "util/process.h"

#include <optional>
#include <string>

#include <sys/types.h>

namespace containerize {

class [[nodiscard]] Child {
public:
    struct Outputs {
        int output, errors;
    };
    /// Starts `program`, a path, with these descriptors as stdout and stderr. Without `outputs`, it runs in
    /// the foreground: with our own streams and in our process group, so that the terminal's signals reach
    /// both. Fails if it cannot be executed.
    static Result<Child> start(const Command& command, const std::string& program,
                               const Environment& environment, std::optional<Outputs> outputs);
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

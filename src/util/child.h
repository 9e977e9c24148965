// A started program and the process group that it leads or, in the foreground, is in. Used by process.cpp
// alone.
#pragma once

#include "util/error.h"
#include "util/process.h"

#include <optional>
#include <string>

#include <sys/types.h>

namespace containerize {

class Child {
public:
    /// `program` is a path. Fails if it cannot be executed.
    static Result<Child> start(const Command& command, const std::string& program,
                               const Environment& environment, int output, int errors);
    /// With our own streams, in our own process group: what the terminal sends to one reaches both.
    static Result<Child> start_in_foreground(const Command& command, const std::string& program,
                                             const Environment& environment);
    Child(Child&& other) noexcept;
    Child& operator=(Child&&) = delete;
    /// Kills what is left of the group, also what the program left in the background.
    ~Child();

    void signal_group(int number) const; ///< in the foreground, the program alone
    /// The exit code as the shell has it, once the program has ended. Does not wait.
    std::optional<int> ended();
    /// As ended(), after waiting; nothing if a signal to us came first.
    std::optional<int> wait();

private:
    explicit Child(pid_t pid) : pid_(pid) {}
    static Result<Child> start(const Command& command, const std::string& program,
                               const Environment& environment, bool foreground, int output, int errors);
    [[nodiscard]] std::optional<int> ended(int options);
    pid_t pid_ = -1;
    pid_t guard_ = -1;
    std::optional<int> exit_code_;
};

} // namespace containerize

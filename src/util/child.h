// A started program and the process group that it leads. Used by process.cpp alone.
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
    Child(Child&& other) noexcept;
    Child& operator=(Child&&) = delete;
    /// Kills what is left of the group, also what the program left in the background.
    ~Child();

    void signal_group(int number) const;
    /// The exit code as the shell has it, once the program has ended. Does not wait.
    std::optional<int> ended();

private:
    explicit Child(pid_t pid) : pid_(pid) {}
    pid_t pid_ = -1;
    pid_t guard_ = -1;
    std::optional<int> exit_code_;
};

} // namespace containerize

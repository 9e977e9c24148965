#include "runtime/job_step.h"

#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace containerize::runtime {

namespace {

// What the environment or /proc says becomes part of a file name.
constexpr std::size_t longest_word = 32;

std::string leading_word(std::string_view text) {
    std::size_t size = 0;
    while (size < text.size() && size < longest_word &&
           std::isalnum(static_cast<unsigned char>(text[size])) != 0)
        ++size;
    return std::string(text.substr(0, size));
}

/// Files of /proc are short, and have no size.
std::string read_proc(const std::string& path) {
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t got = 0; file && (got = read(file.get(), buffer.data(), buffer.size())) > 0;)
        text.append(buffer.data(), static_cast<std::size_t>(got));
    return text;
}

std::string step_of_environment() {
    if (std::getenv("SLURM_JOB_ID") == nullptr) return {};
    std::string step;
    for (const char* variable : {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}) {
        const char* value = std::getenv(variable);
        step.append(step.empty() ? "" : ".").append(leading_word(value == nullptr ? "" : value));
    }
    return step;
}

} // namespace

std::string step_of_cgroups(std::string_view cgroups) {
    static constexpr std::string_view job_mark = "/job_";
    static constexpr std::string_view step_mark = "/step_";
    for (auto at = cgroups.find(job_mark); at != cgroups.npos; at = cgroups.find(job_mark, at + 1)) {
        const auto job = leading_word(cgroups.substr(at + job_mark.size()));
        const auto rest = cgroups.substr(at + job_mark.size() + job.size());
        if (!job.empty() && rest.starts_with(step_mark))
            return job + "." + leading_word(rest.substr(step_mark.size()));
    }
    return {};
}

std::string job_step() {
    // First what cannot be lost: who starts another MPI in a step unsets all variables of Slurm.
    auto step = step_of_cgroups(read_proc("/proc/self/cgroup"));
    return step.empty() ? step_of_environment() : step;
}

Fd step_process() {
    for (pid_t pid = getppid(); pid > 1;) {
        // "PID (NAME) STATE PARENT ..."; the name may have anything in it.
        const auto text = read_proc("/proc/" + std::to_string(pid) + "/stat");
        const auto start = text.find('(');
        const auto end = text.rfind(')');
        if (start == text.npos || end == text.npos || end < start) break;
        const auto name = std::string_view(text).substr(start + 1, end - start - 1);
        if (name == "slurmstepd" || name == "salloc")
            return Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
        char state = 0;
        if (std::sscanf(text.c_str() + end + 1, " %c %d", &state, &pid) != 2) break;
    }
    return {};
}

} // namespace containerize::runtime

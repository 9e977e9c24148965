#include "launch/batch_job.h"

#include "core/schedulers.h"
#include "core/variables.h"
#include "launch/root_key.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace containerize::launch {

namespace {

// The identifier is made from the environment or /proc, and becomes part of a file name.
constexpr std::size_t longest_word = 48;

bool is_letter_or_digit(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

std::string_view leading_word(std::string_view text) {
    const auto end = std::ranges::find_if_not(text.substr(0, longest_word), is_letter_or_digit);
    return {text.begin(), end};
}

/// Makes a job's id, such as "123[4].server", fit for a file name.
std::string as_word(std::string_view text) {
    std::string word = text.size() > longest_word ? short_hash(text) : std::string(text);
    for (auto& c : word)
        if (!is_letter_or_digit(c) && c != '.') c = '_';
    return word;
}

/// Reads up to the first short read: files of /proc report no size.
std::string read_proc(const char* path) {
    const Fd file(open(path, O_RDONLY | O_CLOEXEC));
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t got = sizeof buffer; file && got == sizeof buffer;) {
        got = read(file.get(), buffer.data(), buffer.size());
        if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return text;
}

/// The first word behind `mark` that is followed by `end`, and the text behind that. Empty if there is none.
std::pair<std::string_view, std::string_view> word_between(std::string_view text, std::string_view mark,
                                                           std::string_view end) {
    for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at + 1)) {
        const auto word = leading_word(text.substr(at + mark.size()));
        const auto rest = text.substr(at + mark.size() + word.size());
        if (!word.empty() && rest.starts_with(end)) return {word, rest.substr(end.size())};
    }
    return {};
}

std::string_view part_at(std::string_view text) {
    return text.substr(0, text.find_first_of("/\n"));
}

// LSF's have the cluster's name in between: "/lsf/CLUSTER/job.123.4567.1690000000".
std::string lsf_job(std::string_view cgroups) {
    static constexpr std::string_view lsf_mark = "/lsf/";
    static constexpr std::string_view job_mark = "/job.";
    const auto lsf = cgroups.find(lsf_mark);
    if (lsf == cgroups.npos) return {};
    const auto rest = cgroups.substr(lsf, cgroups.find('\n', lsf) - lsf);
    const auto job = rest.find(job_mark);
    if (job == rest.npos) return {};
    const auto number = part_at(rest.substr(job + job_mark.size()));
    return "lsf-" + as_word(number.substr(0, number.find('.')));
}

// Uses all that are set: a job of one system may start one of another.
std::string job_of_environment() {
    std::string all;
    for (const auto& [name, variables, on_nodes, cgroups] : schedulers) {
        const char* first = value_of(variables.front());
        if (first == nullptr || *first == '\0') continue;
        all.append(all.empty() ? "" : "-").append(name).append("-").append(as_word(first));
        for (std::size_t i = 1; i < variables.size() && variables[i]; ++i) {
            const char* value = value_of(variables[i]);
            all.append(".").append(as_word(value == nullptr ? "" : value));
        }
    }
    return all;
}

/// The innermost service of systemd, which kills all that a service has started when that stops. Not so the
/// user's own systemd, which runs as long as the user is logged in, and sshd for one connection.
std::string service_of_cgroups(std::string_view cgroups) {
    static constexpr std::string_view suffix = ".service";
    std::string_view service;
    for (std::size_t at = 0; at < cgroups.size(); ++at) {
        const auto part = part_at(cgroups.substr(at));
        if (part.ends_with(suffix) && !part.starts_with("user@") && !part.starts_with("sshd@"))
            service = part.substr(0, part.size() - suffix.size());
        at += part.size();
    }
    return service.empty() ? std::string() : "service-" + as_word(service);
}

} // namespace

std::string own_cgroups() {
    return read_proc("/proc/self/cgroup");
}

std::string job_of_cgroups(std::string_view cgroups) {
    // A step of Slurm, such as "/job_12/step_0".
    if (const auto [job, step] = word_between(cgroups, "/job_", "/step_"); !job.empty())
        return std::string("slurm-").append(job).append(".").append(leading_word(step));
    for (const auto& scheduler : schedulers)
        for (const char* mark : scheduler.cgroups)
            if (const auto at = mark == nullptr ? cgroups.npos : cgroups.find(mark); at != cgroups.npos)
                if (const auto job = as_word(part_at(cgroups.substr(at + std::strlen(mark)))); !job.empty())
                    return scheduler.name + ("-" + job);
    return lsf_job(cgroups);
}

std::string job_of_this_process(std::string_view cgroups) {
    // Cgroups first, since they cannot be lost: scripts that start another MPI in a step unset Slurm's
    // variables.
    auto job = job_of_cgroups(cgroups);
    if (job.empty()) job = job_of_environment();
    return job.empty() ? service_of_cgroups(cgroups) : job;
}

std::string login_of_cgroups(std::string_view cgroups) {
    const auto login = word_between(cgroups, "/session-", ".scope").first;
    return login.empty() ? std::string() : std::string("session-").append(login);
}

Fd step_process() {
    for (pid_t pid = getppid(); pid > 1;) {
        // "PID (NAME) STATE PARENT ..."; NAME may contain anything.
        const auto text = read_proc(("/proc/" + std::to_string(pid) + "/stat").c_str());
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

} // namespace containerize::launch

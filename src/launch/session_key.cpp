#include "launch/session_key.h"

#include "launch/batch_job.h"
#include "launch/engine.h"
#include "launch/launch_plan.h"
#include "launch/root_key.h"

#include <array>
#include <cstdint>
#include <cstdio>

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace containerize::launch {

namespace {

ino_t inode_of(const char* path) {
    struct stat info {};
    return stat(path, &info) == 0 ? info.st_ino : 0;
}

std::string this_node() {
    utsname name{};
    uname(&name);
    return short_hash(static_cast<const char*>(name.nodename));
}

/// Longer ones are hashed, because a file name has at most 255 bytes.
constexpr std::size_t longest_job = 80;

struct Limit {
    int resource;
    rlim_t ample; ///< a limit as high as this counts as none
};
constexpr std::array limits = {
    // The kernel keeps these four with a user namespace, for everything in it.
    Limit{RLIMIT_NPROC, RLIM_INFINITY},
    Limit{RLIMIT_MEMLOCK, RLIM_INFINITY},
    Limit{RLIMIT_SIGPENDING, RLIM_INFINITY},
    Limit{RLIMIT_MSGQUEUE, RLIM_INFINITY},
    // These would make the session's own processes fail.
    Limit{RLIMIT_CPU, RLIM_INFINITY},
    Limit{RLIMIT_AS, RLIM_INFINITY},
    Limit{RLIMIT_DATA, RLIM_INFINITY},
    Limit{RLIMIT_FSIZE, RLIM_INFINITY},
    Limit{RLIMIT_NOFILE, 1024},
};

/// struct sched_attr, for which the C library has no name.
struct Scheduling {
    std::uint32_t size = sizeof(Scheduling), policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime = 0, deadline = 0, period = 0;
};

} // namespace

std::string binding_limits() {
    std::string text;
    for (const auto& [resource, ample] : limits) {
        rlimit limit{};
        if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0 || limit.rlim_max >= ample)
            continue;
        text += std::to_string(resource) + "=" + std::to_string(limit.rlim_max) + " ";
    }
    // Users can only increase their niceness, never reduce it; the same is true for SCHED_IDLE, the highest.
    Scheduling scheduling;
    if (syscall(SYS_sched_getattr, 0, &scheduling, sizeof scheduling, 0) == 0) {
        if (scheduling.policy == SCHED_IDLE) text += "idle ";
        if (scheduling.nice > 0) text += "nice=" + std::to_string(scheduling.nice);
    }
    return text;
}

SessionIdentity own_identity(const std::string& root) {
    struct stat root_directory {};
    stat("/", &root_directory);
    const auto cgroups = own_cgroups();
    return {.node = this_node(),
            .user_namespace = inode_of("/proc/self/ns/user"),
            .mount_namespace = inode_of("/proc/self/ns/mnt"),
            .pid_namespace = inode_of("/proc/self/ns/pid"),
            .root_device = root_directory.st_dev,
            .root_inode = root_directory.st_ino,
            .group = getegid(),
            .job = job_of_this_process(cgroups),
            .login = login_of_cgroups(cgroups),
            .limits = binding_limits(),
            .native = insists_on_native(),
            .root = root};
}

SessionNames session_names(const SessionIdentity& identity) {
    char text[160];
    std::snprintf(text, sizeof text, "v%u-%s-%llx-%llx-%llx-%llx.%llx-%x", session_format,
                  identity.node.c_str(), static_cast<unsigned long long>(identity.user_namespace),
                  static_cast<unsigned long long>(identity.mount_namespace),
                  static_cast<unsigned long long>(identity.pid_namespace),
                  static_cast<unsigned long long>(identity.root_device),
                  static_cast<unsigned long long>(identity.root_inode),
                  static_cast<unsigned>(identity.group));
    std::string start = text;
    std::string end;
    if (!identity.job.empty())
        start.append(1, '-').append(identity.job.size() > longest_job ? short_hash(identity.job)
                                                                      : identity.job);
    if (!identity.limits.empty()) end.append("-limits-").append(short_hash(identity.limits));
    if (identity.native) end.append("-native");
    if (!identity.root.empty()) end.append(1, root_separator).append(identity.root);
    return {.shared = start + end,
            .of_login = identity.login.empty() ? std::string() : start + "-" + identity.login + end};
}

std::string root_in_name(std::string_view name) {
    const auto at = name.rfind(root_separator);
    return at == std::string_view::npos ? std::string() : std::string(name.substr(at + 1));
}

std::string inside_link_name(const SessionIdentity& identity) {
    return inside_link_start + ("v" + std::to_string(session_format)) + "-" + identity.node + "-" +
           std::to_string(identity.mount_namespace);
}

} // namespace containerize::launch

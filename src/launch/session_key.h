// What decides which processes share a session, and the session's name made from it. Every launch uses this,
// so it must be fast: no parsing.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

namespace containerize::launch {

/// Processes share a session if all of this is the same for them.
struct SessionIdentity {
    std::string node; ///< nodes may share the directory, and have namespaces of equal numbers
    ino_t user_namespace = 0, mount_namespace = 0, pid_namespace = 0;
    dev_t root_device = 0; ///< of the root directory, which chroot changes
    ino_t root_inode = 0;
    /// A session's user namespace maps one group only: in a session of another group (newgrp, sg), files
    /// could not be given to the caller's own group.
    gid_t group = 0;
    std::string job;     ///< the batch job, whose end also ends its session (batch_job.h)
    std::string login;   ///< counts only if logind kills the processes of logins (logind.h)
    std::string limits;  ///< those that neither a session nor its servers can raise
    bool native = false; ///< whether CONTAINERIZE_ENGINE insists on the native engine
    std::string root;    ///< the one that the programs need (root_key.h); empty for the caller's own
};

/// The identity of the calling process, whose programs need `root`.
SessionIdentity own_identity(const std::string& root);

/// The hard limits, the niceness and the scheduling policy that would bind a session's namespaces or servers;
/// empty if there are none.
std::string binding_limits();

struct SessionNames {
    std::string shared;   ///< by all logins
    std::string of_login; ///< empty if the caller has no login session
};
/// Names of session directories. They contain session_format, so that versions that exchange different
/// messages coexist on a node.
SessionNames session_names(const SessionIdentity& identity);

inline constexpr char root_separator = '+';
/// The root in such a name, or in the name of a session that made way for another; empty if it has none.
std::string root_in_name(std::string_view name);

/// "in-vFORMAT-NODE-NUMBER", with session_format and the number of the caller's mount namespace: how a
/// process inside finds its session. In a session of another format it finds none, and starts one inside.
std::string inside_link_name(const SessionIdentity& identity);
inline constexpr const char* inside_link_start = "in-";

} // namespace containerize::launch

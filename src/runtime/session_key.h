// All that decides which processes share a session, and the name that is made of it. Looked at by each
// launch, so without anything that must be parsed.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

namespace containerize::runtime {

/// Processes for which all of this is the same share a session.
struct SessionIdentity {
    std::string node; ///< numbers of namespaces mean nothing on another, which may share the directory
    ino_t user_namespace = 0, mount_namespace = 0, pid_namespace = 0;
    dev_t root_device = 0; ///< of the root directory, which chroot changes
    ino_t root_inode = 0;
    /// A session has a name for one group only: in another's (newgrp, sg), files could not be given to the
    /// caller's own group.
    gid_t group = 0;
    std::string job;     ///< what ends with it takes its session along (job.h)
    std::string login;   ///< counts only where logins end what they have started (logind.h)
    std::string limits;  ///< what a session cannot put aside, and neither can its servers
    bool native = false; ///< the native engine is insisted on: its session mounts what others would leave to
                         ///< a container runtime
    std::string root;    ///< which one the programs get (root_key.h); empty for the caller's own
};

/// That of the caller, who needs `root`.
SessionIdentity own_identity(const std::string& root);

/// The hard limits that hold a session's namespaces or servers, and the niceness; empty where nothing does.
std::string binding_limits();

struct SessionNames {
    std::string shared;   ///< among all logins
    std::string of_login; ///< empty for who is of none
};
/// Names of directories. A change of how sessions and launchers talk to each other changes them
/// (session_format), so that versions live side by side on a node.
SessionNames session_names(const SessionIdentity& identity);

inline constexpr char root_separator = '+';
/// The root in such a name, or in the name of a session that made way for another.
std::string root_in_name(std::string_view name);

/// "in-NODE-NUMBER" for the mount namespace of the caller, from the inside of a session.
std::string inside_link_name(const SessionIdentity& identity);
inline constexpr const char* inside_link_start = "in-";

} // namespace containerize::runtime

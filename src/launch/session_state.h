// Where sessions are found: a directory of this node that only the user can write. Used by launchers and by
// the session itself.
//
//   STATE/            open_state_directory(); mode 0700
//     start.lock      flock()ed while a session starts or ends; a starting session shares its launcher's lock
//     KEY/            one session; KEY identifies the processes that it serves (session_key.h)
//       lock          byte 0: write-locked by the supervisor as long as it lives (F_GETLK tells its pid)
//                     byte 1: read-locked by a launcher on its way in; the supervisor ends only if none is
//       control       socket: "mount this installation too", "what has its server done?" (control_message.h)
//       plan-HASH     one for each mounted installation (launch_plan.h)
//       log           what happened to the session's servers
//     in-vFORMAT-NODE-NUMBER  link to KEY for processes inside; NUMBER is the inode of their mount namespace
//     root-HASH/      root directories for container runtimes (host_root.h)
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "launch/launch_plan.h"
#include "launch/namespace.h"
#include "launch/session_key.h"

#include <optional>
#include <string>

#include <sys/types.h>
#include <sys/un.h>

namespace containerize::launch {

struct StateDirectory {
    Fd fd;
    std::string path;
};

/// Opens or makes the state directory: /run/containerize for root, $XDG_RUNTIME_DIR/containerize, or
/// containerize-UID (if somebody else has taken that name, with a suffix) in /tmp, $TMPDIR or /dev/shm. Skips
/// network filesystems and directories that others own or may use. Fails with the reasons for each place.
Result<StateDirectory> open_state_directory();

/// A live session as a launcher sees it. The session does not end as long as this object exists.
struct [[nodiscard]] SessionHandle {
    Fd directory;
    Fd lock; ///< holds the lock on byte 1
    pid_t supervisor = 0;
    ProcessNamespaces namespaces; ///< the supervisor's, unless this process is in them already
    bool inside = false;          ///< this process already runs in that session
};

/// Finds the session that the caller may use; nullopt if none is alive. `root` is the needed root
/// (root_key.h): a process in a session has that session's root already, and an installation for the host's
/// root runs in whatever root its caller has.
std::optional<SessionHandle> find_session(const StateDirectory& state, const std::string& root);

/// The plan for the installation at `prefix`; nullopt if its image is not mounted there.
std::optional<LaunchPlan> read_plan(const SessionHandle& session, const std::string& prefix);

enum class MountAnswer {
    mounted,
    stale, ///< the session can no longer hold this installation, and has made way for a new one
};
/// Asks a session to mount another installation. Fails if the session cannot, or does not answer.
Result<MountAnswer> request_mount(const SessionHandle& session, const std::string& prefix);

/// What the server of an installation has done, as JSON (server_statistics.h). Fails if there is no server.
Result<std::string> request_statistics(const SessionHandle& session, const std::string& prefix);

/// Locks STATE/start.lock, waiting for it.
Result<Fd> lock_starts(const StateDirectory& state);

/// Bytes of a session's lock file, locked by fcntl().
inline constexpr off_t supervisor_byte = 0;
inline constexpr off_t entering_byte = 1;
/// fcntl(F_SETLK) of one byte; returns false if somebody else holds it.
bool lock_byte(int fd, off_t byte, short type);

/// Whether the session of that name has no supervisor any more. Only its lock counts: if that is held by a
/// process that is not visible here, or cannot be examined, the session is alive. The caller holds
/// start.lock.
bool is_dead(const StateDirectory& state, const std::string& name);

/// Whether the session of that name is alive and in our pid namespace, or in one that we may not see. In
/// another one, it is a container's, which shares the directory. The caller holds start.lock.
bool may_be_ours(const StateDirectory& state, const std::string& name);

inline constexpr const char* lock_name = "lock";
inline constexpr const char* control_name = "control";
inline constexpr const char* session_log_name = "log";

/// The address of the control socket in a session's directory, short whatever the directory's path is.
sockaddr_un control_address(const Fd& directory);
/// Lets sending and receiving fail after so many seconds.
void set_patience(const Fd& socket, time_t seconds);

/// The name of the session that this link in the state directory leads to; empty if there is none.
std::string session_of_link(const StateDirectory& state, const std::string& inside_link);

} // namespace containerize::launch

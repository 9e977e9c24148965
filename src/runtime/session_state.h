// Where sessions are found: a directory of this node that only the user can write. Used by launchers and by
// the session itself.
//
//   STATE/           /run/containerize for root, $XDG_RUNTIME_DIR/containerize, /tmp/containerize-UID, or
//   what
//                    is there in their place (open_state_directory); mode 0700, owner checked
//     start.lock     held (flock) while a session is started or ends; a session that starts holds its
//     launcher's
//                    lock, too
//     KEY/           one session; KEY names those that it serves (session_key.h)
//       lock         byte 0: write-locked by the supervisor as long as it lives (F_GETLK tells its pid)
//                    byte 1: read-locked by a launcher on its way in; the supervisor ends only if none is
//       control      socket: "mount this installation too", "what has its server done?" (control_message.h)
//       plan-HASH    one for each mounted installation (launch_plan.h)
//       log          what happened to the session's servers
//     in-NODE-NUMBER -> KEY    from the inode number of a session's own mount namespace: for processes inside
#pragma once

#include "runtime/launch_plan.h"
#include "runtime/namespace.h"
#include "runtime/session_key.h"
#include "util/error.h"
#include "util/fd.h"

#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace containerize::runtime {

struct StateDirectory {
    Fd fd;
    std::string path;
};

/// Makes it where it is missing: at the first place on a filesystem of this node where nobody else has taken
/// its name, or has given it to the user but with rights for others.
Result<StateDirectory> open_state_directory();

/// A session that is alive, as a launcher sees it. While this object lives, the session does not end.
struct SessionHandle {
    Fd directory;
    Fd lock; ///< carries the lock on byte 1
    pid_t supervisor = 0;
    ProcessNamespaces namespaces; ///< the supervisor's, unless this process is in them
    bool inside = false;          ///< this process runs in that session already
};

/// Nothing where there is none, or only what a killed one left.
/// `root` is the one that is needed (root_key.h): a process in a session has that session's root already, and
/// an installation for the host's root runs in whatever root its caller has.
std::optional<SessionHandle> find_session(const StateDirectory& state, const std::string& root);

/// The plan for `prefix`, if its image is mounted there.
std::optional<LaunchPlan> read_plan(const SessionHandle& session, const std::string& prefix);

enum class MountAnswer {
    mounted,
    stale, ///< the session has another image there, which its processes still use: it has made way for a new
           ///< one
};
/// Asks a session to mount one more installation.
Result<MountAnswer> request_mount(const SessionHandle& session, const std::string& prefix);

/// What the server of an installation has done, as JSON (server_statistics.h).
Result<std::string> request_statistics(const SessionHandle& session, const std::string& prefix);

/// Locks STATE/start.lock, waiting for it.
Result<Fd> lock_starts(const StateDirectory& state);

/// The byte ranges of a session's lock file, for fcntl.
inline constexpr off_t supervisor_byte = 0;
inline constexpr off_t entering_byte = 1;
/// fcntl(F_SETLK) of one byte; false if it is held otherwise.
bool lock_byte(int fd, off_t byte, short type);

/// Whether the session with that name has no supervisor any more. Only what the kernel says of its lock
/// counts: one that is held by a process that cannot be seen from here, or that cannot be asked about, is
/// alive.
bool is_dead(const StateDirectory& state, const std::string& name);

inline constexpr const char* lock_name = "lock";
inline constexpr const char* control_name = "control";
inline constexpr const char* session_log_name = "log";

/// What a session that starts writes to its launcher every second, before its answer.
inline constexpr char sign_of_life = '.';
/// For how long it may write nothing before its launcher lets others start a session.
inline constexpr int session_patience_ms = 10000;

/// An address for `name` in the directory, short whatever the directory's path is.
std::string control_address(const Fd& directory);

} // namespace containerize::runtime

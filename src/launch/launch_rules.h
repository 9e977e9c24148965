// What a wrapper does when it is called: which path it executes, with which environment, and which calls it
// refuses. These are the launcher's rules, apart from what it does to the process.
#pragma once

#include "launch/environment.h"
#include "launch/launch_plan.h"

#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

namespace containerize::launch {

/// How a wrapper was called, and for which installation.
struct Call {
    std::string program; ///< the wrapper's own path: PREFIX/bin/NAME
    std::string prefix;
    std::string target;         ///< the path to execute inside
    std::string name = {};      ///< last part of `target`
    std::string root = {};      ///< the root that its programs need (root_key.h)
    bool through_prefix = true; ///< called by a path of the installation, not by a link elsewhere (a venv's)
    bool inside = false;        ///< called by a program in the session
    struct stat self {};        ///< the wrapper's file, whatever is at its path by now
    std::string identity = {};  ///< of the manifest (launch_plan.h)
};

/// Whether the file `self` is at `path`, which may be null.
bool is_file(const char* path, const struct stat& self);

/// Sets `target`, `name` and `through_prefix`. `executed` is the path that was given to execve().
void choose_target(Call& call, const char* executed, const char* first_argument);

/// Whether the program would try to change the installation, which is read-only. Its own message would be of
/// no help ("Read-only file system"), and a conda environment's pip would install into the home directory
/// instead.
bool would_change_installation(std::string_view name, char** argv);

/// Sets up the environment for a call from outside the session. Returns the scripts to source after that.
std::vector<std::string> prepare_environment(Variables& variables, const Call& call, const LaunchPlan& plan);

/// Code for bash that sources these scripts and then executes its second argument. The first one becomes
/// argv[0] of that program; the others are its arguments.
std::string code_to_source(const std::vector<std::string>& scripts);

/// The path of the program that `command`, a name without '/', means; empty if there is none.
std::string find_command(std::string_view command, const Variables& variables);

/// The variables of this process that the session gets. It outlives this process, and the environment may
/// hold secrets, so these are only what it uses.
std::vector<std::string> variables_of_session();

} // namespace containerize::launch

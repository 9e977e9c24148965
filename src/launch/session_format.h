// The version of everything that launchers and sessions exchange.
#pragma once

#include <string>

namespace containerize::launch {

/// The version of the launch plan, the control messages, the arguments of the session program, and the rest.
/// It is part of the names of a session, of the link to it and of the session program, so that different
/// versions never meet. Increment it with every change. Its definition, session_format.cpp, holds nothing
/// else, so that tests can link another one.
extern const unsigned session_format;

/// The session program of an installation, relative to its prefix. Each format has a file of its own: while
/// an installation gets other programs, launchers of both versions find theirs.
std::string session_program_file();

} // namespace containerize::launch

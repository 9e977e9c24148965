// Linked in place of this_version.cpp and session_format.cpp: the same program as a newer version that
// exchanges other messages.
#include "core/version.h"
#include "launch/session_format.h"

namespace containerize {

const char* const this_version = "99.1.0";
const unsigned launch::session_format = 99;

} // namespace containerize

// Core dumps contain all that a process knows, including secrets, and may be left where others find them.
#pragma once

namespace containerize {

/// From now on this process leaves no core dump.
void forbid_core_dumps();

/// Restores the user's limit for a program that is executed next. Async-signal-safe.
void restore_core_limit();

} // namespace containerize

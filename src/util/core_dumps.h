// Core dumps hold all that a process knows, its secrets as well, and lie where others may find them.
#pragma once

namespace containerize {

/// This process leaves none from now on.
void forbid_core_dumps();

/// To be called before another program is executed, which is to have the user's limit. Async-signal-safe.
void restore_core_limit();

} // namespace containerize

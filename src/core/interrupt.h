// Interrupts: after Ctrl-C or a SIGTERM, work stops at the next safe point and unwinds through destructors.
#pragma once

#include "core/error.h"

namespace containerize {

/// From now on SIGINT, SIGTERM and SIGHUP only set a flag; those that are ignored (nohup) stay ignored. To be
/// called once, before threads are started.
void catch_interrupts();

/// Whether one of them has come. Stays true.
bool interrupted();

/// The first of them that came, or 0: a command exits with 128 + this.
int interrupt_signal();

/// For poll(): readable from the first interrupt on; -1 before catch_interrupts().
int interrupt_fd();

/// The same for the first SIGTERM or SIGHUP, whether a SIGINT came before it or not.
int termination_signal();
int termination_fd();

/// The error of an operation that an interrupt stopped.
std::unexpected<Error> fail_interrupted();

} // namespace containerize

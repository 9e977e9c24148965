// Ctrl-C and polite kills: work stops at the next safe point and unwinds through destructors.
#pragma once

#include "util/error.h"

namespace containerize {

/// From now on SIGINT, SIGTERM and SIGHUP only set a flag. A signal that is ignored (nohup) stays ignored.
/// Called once by the CLI, before threads.
void catch_interrupts();

/// Whether one of them has come. Stays true.
bool interrupted();

/// The signal that came, 0 if none: a command exits with 128 + this.
int interrupt_signal();

/// Readable from the moment of an interrupt on, for poll; -1 before catch_interrupts().
int interrupt_fd();

/// What an operation returns that stopped because of an interrupt.
std::unexpected<Error> fail_interrupted();

} // namespace containerize

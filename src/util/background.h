// Work that goes on after the command has ended.
#pragma once

#include <functional>

namespace containerize {

/// Does `work` in a process of its own: without the terminal and our output, so that nobody who reads that
/// has to wait. Handlers of signals stay. Nothing is done if no process can be started. Other threads are not
/// there in the new process, so none may hold a lock that `work` needs.
void run_in_background(const std::function<void()>& work);

} // namespace containerize

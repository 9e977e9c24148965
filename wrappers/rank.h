// bin/containerize-rank of an installation: prepares a rank of a parallel program and starts it.
#pragma once

namespace containerize {

/// Executes the command in the arguments. Returns an exit code on failure, and for --help, --print and
/// --master.
int run_rank(int argc, char** argv);

} // namespace containerize

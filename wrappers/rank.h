// bin/containerize-rank of an installation: what a rank of a parallel program is given before it starts.
#pragma once

namespace containerize {

/// Becomes the program that the arguments name; returns an exit code if it cannot, or was asked a question.
int run_rank(int argc, char** argv);

} // namespace containerize

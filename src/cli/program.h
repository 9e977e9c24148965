// The whole program, apart from what happens to exceptions.
#pragma once

namespace containerize::cli {

/// Runs the program that argv[0] names. Returns the exit code.
int run_program(int argc, char** argv);

} // namespace containerize::cli

// libsolv's headers, made fit for C++20, of which `requires` is a word.
#pragma once

#define requires requires_offset
extern "C" {
// Each needs those before it.
// clang-format off
#include <solv/pool.h>
#include <solv/repo.h>
#include <solv/solvable.h>
#include <solv/solver.h>
#include <solv/transaction.h>
#include <solv/conda.h>
#include <solv/knownid.h>
// clang-format on
}
#undef requires

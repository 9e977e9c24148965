// libsolv's headers, which use `requires`, a keyword in C++20.
#pragma once

#define requires requires_offset
extern "C" {
// The order matters.
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

namespace containerize::conda {

struct QueueOwner {
    Queue queue;
    QueueOwner() { queue_init(&queue); }
    QueueOwner(const QueueOwner&) = delete;
    QueueOwner& operator=(const QueueOwner&) = delete;
    ~QueueOwner() { queue_free(&queue); }
};

} // namespace containerize::conda

// libsolv's headers, which use `requires`, a keyword in C++20.
#pragma once

#include <string>

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

/// A text of a package; empty if it has none.
inline const char* lookup_text(Pool* pool, Id solvable, Id key) {
    const char* text = pool_lookup_str(pool, solvable, key);
    return text == nullptr ? "" : text;
}

/// Adds a package that provides only itself.
inline Id add_solvable(Repo* repo, const std::string& name, const std::string& version) {
    const Id id = repo_add_solvable(repo);
    Solvable* solvable = pool_id2solvable(repo->pool, id);
    solvable->name = pool_str2id(repo->pool, name.c_str(), 1);
    solvable->evr = pool_str2id(repo->pool, version.c_str(), 1);
    solvable->provides =
        repo_addid_dep(repo, 0, pool_rel2id(repo->pool, solvable->name, solvable->evr, REL_EQ, 1), 0);
    return id;
}

} // namespace containerize::conda

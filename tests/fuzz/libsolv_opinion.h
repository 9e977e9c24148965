// How libsolv judges versions and match specs, and where it differs from conda.
#pragma once

#include "conda/libsolv.h"
#include "conda/version.h"

#include <memory>
#include <string>
#include <string_view>

namespace containerize::fuzz {

/// To conda, a trailing separator has a meaning ("1.0.1_" is older than "1.0.1a"), and "1.0+cpu" is older
/// than "1.0"; libsolv disagrees.
inline bool in_dispute(const conda::Version& one, const conda::Version& other) {
    const auto ends_with_separator = [](const std::string& text) {
        return text.ends_with('_') || text.ends_with('-');
    };
    const auto is_local = [](const std::string& text) { return text.find('+') != text.npos; };
    return ends_with_separator(one.text()) || ends_with_separator(other.text()) ||
           is_local(one.text()) != is_local(other.text());
}

/// The two treat patterns, and other comparisons of the beginnings of versions, differently.
inline bool in_dispute(const conda::Version& version, std::string_view condition) {
    if (condition.find_first_of("*^$~+_-") != condition.npos ||
        version.text().find_first_of("+_-") != std::string::npos)
        return true;
    for (auto at = condition.find('='); at != condition.npos; at = condition.find('=', at + 2))
        if (condition.substr(at, 2) != "==" &&
            (at == 0 || std::string_view("<>!").find(condition[at - 1]) == std::string_view::npos))
            return true;
    return false;
}

/// The only package of a pool.
class PackageOfLibsolv {
public:
    PackageOfLibsolv(const std::string& name, const std::string& version, const std::string& build) {
        pool_setdisttype(pool_.get(), DISTTYPE_CONDA);
        Repo* repo = repo_create(pool_.get(), "");
        id_ = repo_add_solvable(repo);
        solvable()->name = text_id(name);
        solvable()->evr = text_id(version);
        solvable()->provides = repo_addid_dep(
            repo, 0, pool_rel2id(pool_.get(), solvable()->name, solvable()->evr, REL_EQ, 1), 0);
        ::Repodata* data = repo_add_repodata(repo, 0);
        repodata_add_poolstr_array(data, id_, SOLVABLE_BUILDFLAVOR, build.c_str());
        repodata_internalize(data);
    }

    bool has_version(const std::string& condition) {
        return solvable_conda_matchversion(solvable(), condition.c_str()) != 0;
    }

    bool matches(const std::string& spec) {
        pool_createwhatprovides(pool_.get());
        Id found = 0;
        Id at = 0;
        Pool* pool = pool_.get();
        FOR_PROVIDES(found, at, pool_conda_matchspec(pool, spec.c_str())) {
            if (found == id_) return true;
        }
        return false;
    }

private:
    Solvable* solvable() { return pool_id2solvable(pool_.get(), id_); }
    Id text_id(const std::string& text) { return pool_str2id(pool_.get(), text.c_str(), 1); }

    std::unique_ptr<Pool, decltype(&pool_free)> pool_{pool_create(), pool_free};
    Id id_ = 0;
};

} // namespace containerize::fuzz

// Two versions and a condition: they mean what they mean to libsolv, which decides what is installed.
#include "conda/version.h"

#include "conda/libsolv.h"
#include "harness.h"

#include <memory>

using namespace containerize;
using conda::Version;

namespace {

int sign(std::weak_ordering order) {
    return order < 0 ? -1 : order > 0 ? 1 : 0;
}

int sign(int number) {
    return number < 0 ? -1 : number > 0 ? 1 : 0;
}

/// conda gives a separator at the end a meaning ("1.0.1_" is older than "1.0.1a"), and to it "1.0+cpu" is
/// older than "1.0": libsolv thinks otherwise.
bool in_dispute(const Version& one, const Version& other) {
    const auto ends_with_separator = [](const std::string& text) {
        return text.ends_with('_') || text.ends_with('-');
    };
    const auto is_local = [](const std::string& text) { return text.find('+') != text.npos; };
    return ends_with_separator(one.text()) || ends_with_separator(other.text()) ||
           is_local(one.text()) != is_local(other.text());
}

/// Patterns, and what else compares beginnings of versions, are not understood alike.
bool in_dispute(const Version& version, std::string_view condition) {
    if (condition.find_first_of("*^$~+_-") != condition.npos ||
        version.text().find_first_of("+_-") != std::string::npos)
        return true;
    for (auto at = condition.find('='); at != condition.npos; at = condition.find('=', at + 2))
        if (condition.substr(at, 2) != "==" &&
            (at == 0 || std::string_view("<>!").find(condition[at - 1]) == std::string_view::npos))
            return true;
    return false;
}

bool libsolv_matches(const std::string& version, const std::string& condition) {
    const std::unique_ptr<Pool, decltype(&pool_free)> pool(pool_create(), pool_free);
    pool_setdisttype(pool.get(), DISTTYPE_CONDA);
    Repo* repo = repo_create(pool.get(), "");
    Solvable* solvable = pool_id2solvable(pool.get(), repo_add_solvable(repo));
    solvable->evr = pool_str2id(pool.get(), version.c_str(), 1);
    return solvable_conda_matchversion(solvable, condition.c_str()) != 0;
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 3);
    const auto one = Version::parse(parts[0]);
    const auto other = Version::parse(parts[1]);
    if (fuzz::good_input(one) && fuzz::good_input(other)) {
        const int order = sign(*one <=> *other);
        fuzz::require(order == -sign(*other <=> *one) && one->starts_with(*one));
        if (!in_dispute(*one, *other))
            fuzz::require(order ==
                          sign(pool_evrcmp_conda(nullptr, one->text().c_str(), other->text().c_str(), 0)));
    }
    const auto condition = conda::VersionSpec::parse(parts[2]);
    if (!fuzz::good_input(condition)) return 0;
    const auto again = conda::VersionSpec::parse(condition->text());
    for (const auto* version : {&one, &other}) {
        if (!*version) continue;
        const bool matches = condition->matches(**version);
        fuzz::require(again && again->matches(**version) == matches);
        if (!in_dispute(**version, condition->text()))
            fuzz::require(libsolv_matches((*version)->text(), condition->text()) == matches);
    }
    return 0;
}

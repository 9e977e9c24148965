// Two versions and a condition must mean the same to us as to libsolv, which decides what is installed.
#include "conda/version.h"

#include "harness.h"
#include "libsolv_opinion.h"

using namespace containerize;
using conda::Version;

namespace {

int sign(std::weak_ordering order) {
    return order < 0 ? -1 : order > 0 ? 1 : 0;
}

int sign(int number) {
    return number < 0 ? -1 : number > 0 ? 1 : 0;
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 3);
    const auto one = Version::parse(parts[0]);
    const auto other = Version::parse(parts[1]);
    if (fuzz::good_input(one) && fuzz::good_input(other)) {
        const int order = sign(*one <=> *other);
        fuzz::require(order == -sign(*other <=> *one) && one->starts_with(*one));
        if (!fuzz::in_dispute(*one, *other))
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
        if (!fuzz::in_dispute(**version, condition->text()))
            fuzz::require(fuzz::PackageOfLibsolv("", (*version)->text(), "").has_version(condition->text()) ==
                          matches);
    }
    return 0;
}

// A launch plan, as launchers read it from the directory of the session.
#include "harness.h"
#include "launch/launch_plan.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto plan = launch::plan_from_bytes(fuzz::text_of(data, size));
    if (!plan) return 0;
    const auto bytes = launch::to_bytes(*plan);
    const auto again = launch::plan_from_bytes(bytes);
    fuzz::require(again && launch::to_bytes(*again) == bytes);
    return 0;
}

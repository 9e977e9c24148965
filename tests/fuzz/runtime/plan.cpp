// A launch plan, as launchers read it from the directory of the session.
#include "harness.h"
#include "runtime/launch_plan.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto plan = runtime::plan_from_bytes(fuzz::text_of(data, size));
    if (!plan) return 0;
    const auto bytes = runtime::to_bytes(*plan);
    const auto again = runtime::plan_from_bytes(bytes);
    fuzz::require(again && runtime::to_bytes(*again) == bytes);
    return 0;
}

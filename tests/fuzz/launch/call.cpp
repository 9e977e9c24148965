// A launch through a container runtime, as it is read from the file descriptor that a variable names.
#include "harness.h"
#include "launch/carried_call.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto call = launch::call_from_bytes(fuzz::text_of(data, size));
    if (!call) return 0;
    const auto bytes = launch::to_bytes(*call);
    const auto again = launch::call_from_bytes(bytes);
    fuzz::require(again && launch::to_bytes(*again) == bytes);
    return 0;
}

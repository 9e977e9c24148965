// Profiles of images, and records of what was read.
#include "harness.h"
#include "image/access_profile.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::text_of(data, size);
    [[maybe_unused]] const auto record = image::parse_record(text, "record");
    const auto profile = image::parse_profile(text, "profile");
    if (!profile) return 0;
    const auto again = image::parse_profile(image::to_text(*profile), "profile");
    fuzz::require(again && again->blocks == profile->blocks);
    for (const std::uint64_t alignment : {0U, 1U << 20U})
        for (const auto& request : image::requests_for(
                 profile->blocks, {.size = 4U << 20U, .gap = 256U << 10U, .alignment = alignment}))
            fuzz::require(request.begin < request.end && request.end - request.begin <= 4U << 20U);
    return 0;
}

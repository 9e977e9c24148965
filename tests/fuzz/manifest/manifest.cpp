// The manifest of an installation, which anybody may have written.
#include "manifest/manifest.h"

#include "harness.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto manifest = manifest::parse_manifest(fuzz::text_of(data, size), "manifest");
    if (!manifest) return 0;
    // A manifest that was read can be written and read again.
    const auto text = to_text(*manifest);
    const auto again = manifest::parse_manifest(text, "manifest");
    fuzz::require(again && to_text(*again) == text);
    [[maybe_unused]] const auto plan = manifest::plan_of(*manifest, "/prefix", "identity");
    return 0;
}

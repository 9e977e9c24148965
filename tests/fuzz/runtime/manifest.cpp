// The manifest of an installation, which anybody may have written.
#include "runtime/manifest.h"

#include "harness.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto manifest = runtime::parse_manifest(fuzz::text_of(data, size), "manifest");
    if (!manifest) return 0;
    // A manifest that was read can be written and read again.
    const auto text = runtime::to_text(*manifest);
    const auto again = runtime::parse_manifest(text, "manifest");
    fuzz::require(again && runtime::to_text(*again) == text);
    [[maybe_unused]] const auto plan = runtime::plan_of(*manifest, "/prefix", "identity");
    return 0;
}

// Specifications of the Container Device Interface, as JSON and as YAML.
#include "gpu/cdi.h"

#include "harness.h"

using namespace containerize;

namespace {

void check(const gpu::CdiEdits& edits) {
    for (const auto& [source, target] : edits.mounts)
        fuzz::require(gpu::mount_objection(source).empty() && gpu::mount_objection(target).empty());
    for (const auto& [path, target] : edits.links)
        fuzz::require(gpu::mount_objection(path).empty());
    for (const auto& node : edits.nodes)
        fuzz::require(node.starts_with("/dev/") && node.find("/../") == node.npos);
    for (const auto& [name, value] : edits.environment)
        fuzz::require(name.starts_with("NVIDIA_") && name.find('=') == name.npos);
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::text_of(data, size);
    for (const char* file : {"x.json", "x.yaml"}) {
        const auto specification = gpu::parse_cdi(text, file);
        if (!fuzz::good(specification)) continue;
        check(specification->common);
        for (const auto& [name, edits] : specification->devices)
            check(edits);
    }
    return 0;
}

// Programs and libraries of the host, and the cache of its dynamic loader.
#include "base/elf.h"
#include "harness.h"
#include "input_file.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::text_of(data, size);
    [[maybe_unused]] const auto needs = base::read_elf(fuzz::input_file("program", text));
    [[maybe_unused]] const auto libraries = base::parse_loader_cache(text);
    return 0;
}

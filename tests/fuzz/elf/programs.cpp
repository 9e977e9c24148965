// Programs and libraries of the host, and the cache of its dynamic loader.
#include "elf/library_cache.h"
#include "elf/read_elf.h"
#include "harness.h"
#include "input_file.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::text_of(data, size);
    const image::DirectoryView host("/");
    [[maybe_unused]] const auto elf = elf::read_elf(host, fuzz::input_file("program", text));
    [[maybe_unused]] const auto libraries = elf::parse_library_cache(text);
    return 0;
}

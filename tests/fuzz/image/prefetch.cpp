// An image that is read while blocks are read ahead by a profile that need not fit it.
#include "image/prefetch.h"

#include "image/walk.h"
#include "image_input.h"

using namespace containerize;

namespace {

void read_files(image::Layers& layers, image::Walk& walk, image::Reference directory) {
    const auto level = walk.enter(directory);
    if (!level) return;
    for (const auto& entry : level->listing().entries) {
        for (const std::uint64_t offset : {0U, 70'000U}) {
            std::vector<image::Slice> slices;
            [[maybe_unused]] const auto content = layers.read(entry.inode, offset, 5000, slices);
        }
        read_files(layers, walk, entry.inode);
    }
}

/// A profile of twelve bytes per block, without the blocks that parse_profile() would reject.
image::Profile profile_of(std::string_view input) {
    image::Profile profile;
    while (input.size() >= 12) {
        const auto start = fuzz::take<std::uint64_t>(input) % (std::uint64_t{1} << 48U);
        const auto size_field = fuzz::take<std::uint32_t>(input) % (2U << 24U);
        const image::ProfileBlock block{.start = start, .size_field = size_field};
        if (block.stored() > 0 && block.stored() <= 1U << 20U)
            profile = image::merged(std::move(profile), {.image = {}, .blocks = {block}});
    }
    return profile;
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto parts = fuzz::images_in(fuzz::text_of(data, size), 2);
    std::vector<image::Layers::ImageFile> files;
    files.push_back(fuzz::image_file_of(parts.front()));
    const auto layers = image::Layers::open(std::move(files));
    if (!layers) return 0;
    (*layers)->prefetch({profile_of(parts.back())}, {.shape = {.size = 4096, .gap = 100, .alignment = 8192},
                                                     .depth = 2,
                                                     .decompressors = 1,
                                                     .memory = 20'000,
                                                     .ahead = 300'000,
                                                     .idle_core = {},
                                                     .memory_left = {}});
    image::Walk walk(**layers);
    read_files(**layers, walk, (*layers)->root());
    return 0;
}

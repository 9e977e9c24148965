// Several images shown as one tree, like those of an installation and its updates in a session.
#include "image/layers.h"

#include "image/walk.h"
#include "image_input.h"

using namespace containerize;

namespace {

constexpr std::size_t most_images = 3;

void look_at(image::Layers& layers, image::Walk& walk, image::Reference directory) {
    const auto level = walk.enter(directory);
    if (!level) return;
    for (const auto& entry : level->listing().entries) {
        fuzz::require(layers.lookup(directory, level->listing().name(entry)) == entry.inode);
        [[maybe_unused]] const auto inode = layers.inode(entry.inode);
        [[maybe_unused]] const auto xattrs = layers.xattrs(entry.inode);
        [[maybe_unused]] const auto target = layers.read_link(entry.inode);
        std::vector<image::Slice> slices;
        [[maybe_unused]] const auto content = layers.read(entry.inode, 0, 5000, slices);
        look_at(layers, walk, entry.inode);
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<image::Layers::ImageFile> files;
    for (const auto input : fuzz::images_in(fuzz::text_of(data, size), most_images))
        files.push_back(fuzz::image_file_of(input));
    const auto layers = image::Layers::open(std::move(files));
    if (!layers) return 0;
    image::Walk walk(**layers);
    look_at(**layers, walk, (*layers)->root());
    [[maybe_unused]] const auto found = (*layers)->find("a/b/c");
    return 0;
}

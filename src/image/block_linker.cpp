#include "image/block_linker.h"

#include "core/interrupt.h"
#include "image/walk.h"

namespace containerize::image {

namespace {

/// Stored bytes from which a file is copied in any case: the end of another file, in the block that they
/// share, is then at most an eighth of what is copied.
constexpr std::uint64_t large = 1U << 20U;

/// The bytes of the file that are in its fragment.
std::uint64_t end_of(const StoredFile& file, std::uint32_t block_size) {
    return file.size & (block_size - 1);
}

} // namespace

Status BlockLinker::choose() {
    images_.resize(layers_.images().size());
    TRY(for_each_file(layers_, [this](Reference file, const std::string& path) { return read(file, path); }));
    std::erase_if(files_, [this](const auto& file) { return !is_used_enough(file.first, file.second); });
    return {};
}

Status BlockLinker::read(Reference file, const std::string& path) {
    const auto image = Layers::image_of(file);
    if (!writer_.can_copy(*layers_.images()[image]) || files_.contains(file)) return {};
    auto stored = layers_.stored_file(file);
    if (!stored) return fail_errno("cannot read the image", path, stored.error());
    if (stored->fragment != Inode::no_fragment) {
        auto& used = images_[image].used[stored->fragment];
        const auto block_size = layers_.images()[image]->block_size();
        used += end_of(*stored, block_size);
        // It is copied for this file, so all others in it can be, too.
        if (stored->stored() >= large) used += block_size;
    }
    files_.emplace(file, std::move(*stored));
    return {};
}

bool BlockLinker::is_used_enough(Reference file, const StoredFile& stored) const {
    if (stored.fragment == Inode::no_fragment) return true;
    const auto image = Layers::image_of(file);
    return images_[image].used.at(stored.fragment) >= layers_.images()[image]->block_size() / 2;
}

Status BlockLinker::copy(std::size_t image, std::span<const StoredFile> files) {
    return writer_.copy_blocks(*layers_.images()[image], files, images_[image].copied);
}

Status BlockLinker::copy_first(Reference file) {
    const auto found = files_.find(file);
    if (found == files_.end()) return {};
    if (found->second.stored() >= large) return copy(Layers::image_of(file), {&found->second, 1});
    files_.erase(found);
    return {};
}

Status BlockLinker::copy_rest() {
    std::vector<std::vector<StoredFile>> by_image(images_.size());
    for (const auto& [file, stored] : files_)
        by_image[Layers::image_of(file)].push_back(stored);
    for (std::size_t image = 0; image < images_.size(); ++image) {
        if (interrupted()) return fail_interrupted();
        if (!by_image[image].empty()) TRY(copy(image, by_image[image]));
    }
    return {};
}

Result<bool> BlockLinker::link(Reference file, const std::string& path, const Attributes& attributes) {
    const auto found = files_.find(file);
    if (found == files_.end()) return false;
    TRY(writer_.link_file(path, attributes, found->second, images_[Layers::image_of(file)].copied));
    return true;
}

} // namespace containerize::image

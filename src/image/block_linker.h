// Copying the content of layers' files into one image without decompressing it.
#pragma once

#include "image/layers.h"
#include "image/writer.h"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace containerize::image {

/// Decides which files' blocks are copied as they are. Files are compressed anew if their image has other
/// settings than the new one, and if they end in a block of which the layers show less than half: what is
/// removed or replaced by a layer must not stay in the new image.
class BlockLinker {
public:
    BlockLinker(Layers& layers, Writer& writer) : layers_(layers), writer_(writer) {}

    /// Looks at all files, from the root on. Without it, all are compressed anew.
    Status choose();
    /// Copies the file's blocks now. Those of small files are compressed anew: they then share blocks with
    /// others of this kind, not with files that are read later.
    Status copy_first(Reference file);
    /// Copies all other blocks, in the order of the layers.
    Status copy_rest();
    /// Adds a file whose blocks were copied; false if its content must be compressed.
    Result<bool> link(Reference file, const std::string& path, const Attributes& attributes);

private:
    struct Image {
        std::unordered_map<std::uint32_t, std::uint64_t> used; ///< bytes that are shown, by fragment
        CopiedBlocks copied = {};
    };
    Status read(Reference file, const std::string& path);
    Status copy(std::size_t image, std::span<const StoredFile> files);
    [[nodiscard]] bool is_used_enough(Reference file, const StoredFile& stored) const;

    Layers& layers_;
    Writer& writer_;
    std::vector<Image> images_;
    std::unordered_map<Reference, StoredFile> files_; ///< whose blocks are copied
};

} // namespace containerize::image

#include "image/merge.h"

#include "image/tree_copier.h"

namespace containerize::image {

Result<WriteStats> write_merged(Layers& layers, const std::filesystem::path& image,
                                const WriterOptions& options, const PackProgress& progress,
                                const std::vector<RecordedFile>& first) {
    auto writer = TRY(Writer::create(image, options));
    TreeCopier copier(layers, writer, {}, progress);
    for (const auto& file : first)
        TRY(copier.copy_first(file.reference, file.path));
    TRY(copier.copy_rest());
    return writer.finish();
}

} // namespace containerize::image

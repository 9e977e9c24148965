#include "image/merge.h"

#include "image/tree_copier.h"

namespace containerize::image {

Result<WriteStats> write_merged(Layers& layers, const std::filesystem::path& image,
                                const WriterOptions& options, const PackProgress& progress,
                                const std::vector<RecordedFile>& first) {
    auto writer = Writer::create(image, options);
    if (!writer) return fail(std::move(writer.error()));
    TreeCopier copier(layers, *writer, {}, progress);
    for (const auto& file : first)
        if (auto copied = copier.copy_first(file.reference, file.path); !copied)
            return fail(std::move(copied.error()));
    if (auto copied = copier.copy_rest(); !copied) return fail(std::move(copied.error()));
    return writer->finish();
}

} // namespace containerize::image

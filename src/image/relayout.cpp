#include "image/relayout.h"

#include "image/block_linker.h"
#include "image/tree_copier.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

namespace containerize::image {

namespace {

/// Positions of blocks in the profiles, by image and start.
std::vector<std::unordered_map<std::uint64_t, std::size_t>> places_in(const std::vector<Profile>& profiles) {
    std::vector<std::unordered_map<std::uint64_t, std::size_t>> places(profiles.size());
    std::size_t place = 0;
    for (std::size_t image = 0; image < profiles.size(); ++image)
        for (const auto& block : profiles[image].blocks)
            places[image].emplace(block.start, place++);
    return places;
}

} // namespace

std::size_t RecordedFile::first() const {
    std::size_t first = std::numeric_limits<std::size_t>::max();
    for (const auto& [number, place] : blocks)
        first = std::min(first, place);
    return first;
}

Result<std::vector<RecordedFile>> recorded_files(Layers& layers, const std::vector<Profile>& profiles) {
    const auto places = places_in(profiles);
    std::vector<RecordedFile> files;
    TRY(for_each_file(layers, [&](Reference reference, const std::string& path) -> Status {
        const auto image = Layers::image_of(reference);
        if (image >= places.size() || places[image].empty()) return {};
        const auto blocks = layers.blocks_of(reference);
        if (!blocks) return fail_errno("cannot read the image", path, blocks.error());
        RecordedFile file{.path = path, .reference = reference, .blocks = {}};
        for (std::size_t i = 0; i < blocks->size(); ++i)
            if (const auto place = places[image].find((*blocks)[i].start); place != places[image].end())
                file.blocks.emplace_back(i, place->second);
        if (!file.blocks.empty()) files.push_back(std::move(file));
        return {};
    }));
    std::ranges::stable_sort(files, {}, &RecordedFile::first);
    return files;
}

std::expected<std::vector<ProfileBlock>, int> recorded_blocks(Layers& image,
                                                              const std::vector<RecordedFile>& files) {
    std::map<std::size_t, std::vector<ProfileBlock>> by_place;
    for (const auto& file : files) {
        const auto reference = TRY(image.find(file.path));
        const auto blocks = TRY(image.blocks_of(reference));
        for (const auto& [number, place] : file.blocks)
            if (number < blocks.size()) by_place[place].push_back(blocks[number]);
    }
    Profile all;
    Profile ordered;
    for (const auto& [place, blocks] : by_place)
        all.blocks.insert(all.blocks.end(), blocks.begin(), blocks.end());
    return merged(std::move(ordered), all).blocks; // without duplicates
}

Result<WriteStats> write_merged(Layers& layers, const std::filesystem::path& image,
                                const WriterOptions& options, const MergeOptions& how) {
    auto writer = TRY(Writer::create(image, options));
    BlockLinker linker(layers, writer);
    if (!how.compress_anew) TRY(linker.choose());
    TreeCopier copier(layers, writer, {}, how.progress,
                      [&](Reference file, const std::string& path, const Attributes& attributes) {
                          return linker.link(file, path, attributes);
                      });
    for (const auto& file : how.first) {
        TRY(linker.copy_first(file.reference));
        TRY(copier.copy_first(file.reference, file.path));
    }
    TRY(linker.copy_rest());
    TRY(copier.copy_rest());
    return writer.finish();
}

} // namespace containerize::image

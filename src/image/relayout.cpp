#include "image/relayout.h"

#include "image/tree_copier.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include <dirent.h>

namespace containerize::image {

namespace {

class Search {
public:
    Search(Layers& layers, const std::vector<Profile>& profiles)
        : layers_(layers), walk_(layers), places_(profiles.size()) {
        std::size_t place = 0;
        for (std::size_t image = 0; image < profiles.size(); ++image)
            for (const auto& block : profiles[image].blocks)
                places_[image].emplace(block.start, place++);
    }

    std::expected<void, int> directory(Reference reference, const std::string& path) {
        const auto level = TRY(walk_.enter(reference));
        const Directory& listing = level.listing();
        for (const auto& entry : listing.entries) {
            const auto below = (path.empty() ? "" : path + "/") + std::string(listing.name(entry));
            std::expected<void, int> done;
            if (entry.type == DT_DIR) done = directory(entry.inode, below);
            if (entry.type == DT_REG) done = file(entry.inode, below);
            if (!done) return done;
        }
        return {};
    }

    std::vector<RecordedFile> found;

private:
    std::expected<void, int> file(Reference reference, const std::string& path) {
        const auto image = Layers::image_of(reference);
        if (image >= places_.size() || places_[image].empty()) return {};
        const auto blocks = TRY(layers_.blocks_of(reference));
        RecordedFile file{.path = path, .reference = reference, .blocks = {}};
        for (std::size_t i = 0; i < blocks.size(); ++i)
            if (const auto place = places_[image].find(blocks[i].start); place != places_[image].end())
                file.blocks.emplace_back(i, place->second);
        if (!file.blocks.empty()) found.push_back(std::move(file));
        return {};
    }

    Layers& layers_;
    Walk walk_;
    std::vector<std::unordered_map<std::uint64_t, std::size_t>> places_; ///< of blocks, by image and start
};

} // namespace

std::size_t RecordedFile::first() const {
    std::size_t first = std::numeric_limits<std::size_t>::max();
    for (const auto& [number, place] : blocks)
        first = std::min(first, place);
    return first;
}

std::expected<std::vector<RecordedFile>, int> recorded_files(Layers& layers,
                                                             const std::vector<Profile>& profiles) {
    Search search(layers, profiles);
    TRY(search.directory(layers.root(), ""));
    std::ranges::stable_sort(search.found, {}, &RecordedFile::first);
    return std::move(search.found);
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

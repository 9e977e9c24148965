// Images unpacked to disk and merged into one: nothing may be written outside the target.
#include "image/unpack.h"

#include "../unit/temporary.h"
#include "image/relayout.h"
#include "image_input.h"

#include <csignal>

#include <sys/resource.h>

using namespace containerize;

namespace {

constexpr std::size_t most_images = 2;

/// An image of a few bytes can contain a file of a thousand terabytes, which must not be written.
[[maybe_unused]] const bool limited = [] {
    std::signal(SIGXFSZ, SIG_IGN);
    constexpr rlimit largest{.rlim_cur = 1U << 20U, .rlim_max = 1U << 20U};
    return setrlimit(RLIMIT_FSIZE, &largest) == 0;
}();

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const test::TemporaryDirectory directory;
    std::vector<fs::path> images;
    for (const auto input : fuzz::images_in(fuzz::text_of(data, size), most_images))
        images.push_back(directory.write("image" + std::to_string(images.size()), fuzz::image_of(input)));
    fs::create_directory(directory.path() / "target");
    [[maybe_unused]] const auto unpacked = image::unpack(images, directory.path() / "target");
    std::size_t names = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory.path()))
        ++names;
    fuzz::require(names == images.size() + 1);
    if (const auto layers = image::open_layers(images)) {
        [[maybe_unused]] const auto recorded = image::recorded_files(**layers, {image::Profile{}});
        image::WriterOptions options;
        options.compression.compressor = image::Compressor::none;
        [[maybe_unused]] const auto merged =
            image::write_merged(**layers, directory.path() / "merged", options);
    }
    return 0;
}

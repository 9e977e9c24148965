// The layers of an image, top layer first, in the order in which they are merged.
#include "base/oci_layers.h"
#include "harness.h"
#include "input_file.h"
#include "tar_input.h"

using namespace containerize;

namespace {

constexpr std::size_t most_layers = 3;
constexpr std::uint64_t limit = 1U << 20U;

/// A layer that is read in one piece.
base::Layer layer_of(std::string_view bytes) {
    return {.name = "layer", .digest = {}, .diff_id = {}, .open = [bytes]() -> Result<base::ReadMore> {
                return [left = std::as_bytes(std::span(bytes))]() mutable {
                    return Result<std::span<const std::byte>>(std::exchange(left, {}));
                };
            }};
}

/// Each layer is preceded by its size in tar blocks; the remaining bytes are the last layer.
std::vector<std::string_view> layers_in(std::string_view input) {
    std::vector<std::string_view> layers;
    while (!input.empty() && layers.size() + 1 < most_layers) {
        const auto blocks = static_cast<unsigned char>(input.front());
        input.remove_prefix(1);
        layers.push_back(input.substr(0, std::size_t{512} * blocks));
        input.remove_prefix(layers.back().size());
    }
    layers.push_back(input);
    return layers;
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto image = fuzz::input_directory().path() / "image";
    fs::remove(image);
    image::WriterOptions options;
    options.compression.compressor = image::Compressor::none;
    auto writer = image::Writer::create(image, options);
    fuzz::require(writer.has_value());
    base::LayerMerge merge(*writer, limit);
    for (const auto part : layers_in(fuzz::text_of(data, size))) {
        const auto bytes = fuzz::with_checksums(part);
        const auto layer = layer_of(bytes);
        if (!fuzz::good(merge.add(layer))) return 0;
    }
    if (fuzz::good(merge.finish())) fuzz::require(writer->finish().has_value());
    return 0;
}

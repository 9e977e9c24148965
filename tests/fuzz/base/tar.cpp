// The layers of an image, the uppermost first, as they would be merged.
#include "base/layers.h"
#include "harness.h"
#include "input_file.h"

#include <array>
#include <cstdio>

using namespace containerize;

namespace {

constexpr std::size_t most_layers = 3;
constexpr std::uint64_t limit = 1U << 20U;

/// Each header gets the checksum that it should have: a fuzzer would hardly find one.
std::string with_checksums(std::string_view bytes) {
    constexpr std::size_t block = 512, sum_at = 148, sum_size = 8, magic_at = 257;
    std::string archive(bytes);
    for (std::size_t start = 0; start + block <= archive.size(); start += block) {
        if (bytes.substr(start + magic_at, 5) != "ustar") continue;
        archive.replace(start + sum_at, sum_size, sum_size, ' ');
        unsigned sum = 0;
        for (const char c : std::string_view(archive).substr(start, block))
            sum += static_cast<unsigned char>(c);
        std::array<char, sum_size> text{};
        std::snprintf(text.data(), text.size(), "%06o", sum);
        archive.replace(start + sum_at, sum_size, text.data(), sum_size);
    }
    return archive;
}

/// A whole layer as its only piece.
base::Layer layer_of(std::string_view bytes) {
    return {.name = "layer", .digest = {}, .diff_id = {}, .open = [bytes]() -> Result<base::ReadMore> {
                return [left = std::as_bytes(std::span(bytes))]() mutable {
                    return Result<std::span<const std::byte>>(std::exchange(left, {}));
                };
            }};
}

/// Each is preceded by its size in blocks of tar; what is left is the last one.
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
        const auto bytes = with_checksums(part);
        const auto layer = layer_of(bytes);
        if (!fuzz::good(merge.add(layer))) return 0;
    }
    if (fuzz::good(merge.finish())) fuzz::require(writer->finish().has_value());
    return 0;
}

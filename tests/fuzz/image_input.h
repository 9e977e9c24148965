// How harnesses get images: as tables that are compressed only afterwards, so that a fuzzer's changes of
// fields are not lost in a compressor. An input that begins like an image is used unchanged.
#pragma once

#include "../lib/squashfs_image.h"
#include "harness.h"
#include "image/layers.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace containerize::fuzz {

/// Also written by tests/fuzz/seeds.py.
struct ImageHeader {
    std::uint8_t compressor; ///< 0: tables are not compressed
    std::uint8_t block_log;  ///< minus 12
    std::uint16_t inodes, listings, fragments, xattrs,
        xattr_sets; ///< sizes in bytes; the rest of the input is data
    std::uint32_t root_block;
    std::uint16_t root_offset;
    std::uint16_t unused;
};
static_assert(sizeof(ImageHeader) == 20);

inline std::string_view take(std::string_view& bytes, std::size_t size) {
    const auto part = bytes.substr(0, size);
    bytes.remove_prefix(part.size());
    return part;
}

template<class T>
T take(std::string_view& bytes) {
    T value{};
    const auto part = take(bytes, sizeof value);
    std::memcpy(&value, part.data(), part.size());
    return value;
}

inline std::string image_of(std::string_view input) {
    if (input.starts_with("hsqs")) return std::string(input);
    constexpr std::array compressors = {SQFS_COMP_ZSTD, SQFS_COMP_GZIP, SQFS_COMP_LZMA,
                                        SQFS_COMP_XZ,   SQFS_COMP_LZ4,  SQFS_COMP_ZSTD};
    const auto header = take<ImageHeader>(input);
    test::SquashfsImage image;
    image.compressor = compressors[header.compressor % compressors.size()];
    image.compress_tables = header.compressor % compressors.size() != 0;
    image.block_log = static_cast<std::uint16_t>(12 + header.block_log % 9);
    image.root = std::uint64_t{header.root_block} << 16U | header.root_offset;
    image.inodes = take(input, header.inodes);
    image.listings = take(input, header.listings);
    image.fragments = take(input, header.fragments);
    image.xattrs = take(input, header.xattrs);
    image.xattr_sets = take(input, header.xattr_sets);
    image.data = input;
    return to_bytes(image);
}

inline image::Layers::ImageFile image_file_of(std::string_view input) {
    return {.file = file_of(image_of(input)), .path = "image", .offset = 0};
}

/// Each image is preceded by its size in three bytes; the remaining bytes are the last image.
inline std::vector<std::string_view> images_in(std::string_view input, std::size_t most) {
    std::vector<std::string_view> images;
    while (images.size() + 1 < most && input.size() > 3) {
        const auto low = take<std::uint16_t>(input);
        const auto high = take<std::uint8_t>(input);
        images.push_back(take(input, std::size_t{high} << 16U | low));
    }
    images.push_back(input);
    return images;
}

} // namespace containerize::fuzz

// Makes zip archives with any content, also what no tool writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

namespace containerize::test {

struct ZipMember {
    std::string name, content = {};
    std::uint32_t mode = 0100644;
    bool deflated = false;
    std::uint16_t flags = 0;            ///< 1: encrypted, 0x800: the name is UTF-8
    std::uint32_t wrong_crc = 0;        ///< added to the right one
    std::uint32_t declared_size = 0;    ///< instead of the right one, if it is not 0
    std::string name_in_directory = {}; ///< instead of `name`
};

inline std::string deflated(std::string_view content) {
    z_stream stream{};
    deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    std::string packed(deflateBound(&stream, content.size()), '\0');
    std::string input(content);
    stream.next_in = reinterpret_cast<Bytef*>(input.data());
    stream.avail_in = static_cast<uInt>(input.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    deflate(&stream, Z_FINISH);
    packed.resize(stream.total_out);
    deflateEnd(&stream);
    return packed;
}

inline std::string little_endian(std::uint64_t value, unsigned bytes) {
    std::string text;
    for (unsigned i = 0; i < bytes; ++i)
        text += static_cast<char>(value >> (8 * i) & 0xFFU);
    return text;
}

inline std::string zip_of(const std::vector<ZipMember>& members) {
    std::string zip;
    std::string directory;
    for (const auto& one : members) {
        const auto packed = one.deflated ? deflated(one.content) : one.content;
        const auto crc =
            static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(one.content.data()),
                                             static_cast<uInt>(one.content.size()))) +
            one.wrong_crc;
        const auto size = one.declared_size == 0 ? one.content.size() : one.declared_size;
        // Flags, method, time and date (1980-01-01 is 0x21), checksum and sizes.
        const auto common = little_endian(one.flags, 2) + little_endian(one.deflated ? 8 : 0, 2) +
                            little_endian(0, 2) + little_endian(0x21, 2) + little_endian(crc, 4) +
                            little_endian(packed.size(), 4) + little_endian(size, 4);
        const auto& listed = one.name_in_directory.empty() ? one.name : one.name_in_directory;
        directory += std::string("PK\1\2") + little_endian(0x0314, 2) + little_endian(20, 2) + common +
                     little_endian(listed.size(), 2) + little_endian(0, 8) +
                     little_endian(std::uint64_t{one.mode} << 16U, 4) + little_endian(zip.size(), 4) + listed;
        zip += std::string("PK\3\4") + little_endian(20, 2) + common + little_endian(one.name.size(), 2) +
               little_endian(0, 2) + one.name + packed;
    }
    return zip + directory + "PK\5\6" + little_endian(0, 4) + little_endian(members.size(), 2) +
           little_endian(members.size(), 2) + little_endian(directory.size(), 4) +
           little_endian(zip.size(), 4) + little_endian(0, 2);
}

} // namespace containerize::test

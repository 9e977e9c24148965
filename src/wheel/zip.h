// Reads zip archives. libarchive would do this, too, but it hides what is needed to judge a foreign archive
// (checksums, NUL in names, overlapping members), drops names outside ASCII without a locale, and takes times
// for local ones.
#pragma once

#include "core/error.h"
#include "core/open_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <zlib.h>

namespace containerize::wheel {

/// What the central directory says of a member.
struct ZipMember {
    std::string name; ///< any bytes
    std::uint32_t mode = 0;
    std::uint32_t mtime = 0; ///< the stored time, taken for UTC
    bool encrypted = false;
    unsigned method = 0; ///< how it is compressed; ZipReader reads stored and deflated members
    std::uint32_t crc = 0;
    std::uint64_t size = 0, packed_size = 0;
    std::uint64_t offset = 0; ///< of its header
};

/// The members in the order of the central directory. Fails, with the reason only, if the archive is
/// malformed, has anything before or after it, or if members overlap.
Result<std::vector<ZipMember>> read_zip_directory(const OpenFile& file);

/// Reads members, one after the other. Errors have only the reason.
class ZipReader {
public:
    explicit ZipReader(const OpenFile& file);

    /// Goes to a member of this file. Nobody else must have its own header.
    Status begin(const ZipMember& member);
    /// The next piece; empty at the end. Fails if the content is not exactly what the directory says, before
    /// the last piece is returned.
    Result<std::span<const std::byte>> read();

private:
    struct EndInflate {
        void operator()(z_stream* stream) const {
            inflateEnd(stream);
            delete stream;
        }
    };
    Result<std::size_t> copy(std::size_t room);
    Result<std::size_t> unpack(std::size_t room);
    /// Reads at most this many of the member's stored bytes.
    Result<std::size_t> read_packed(std::vector<Bytef>& buffer, std::size_t most);

    OpenFile file_;
    ZipMember member_;
    std::uint64_t at_ = 0, left_ = 0; ///< stored bytes: position, and number
    std::uint64_t total_ = 0;
    uLong crc_ = 0;
    bool finished_ = true;
    std::unique_ptr<z_stream, EndInflate> stream_;
    std::vector<Bytef> input_, output_;
};

} // namespace containerize::wheel

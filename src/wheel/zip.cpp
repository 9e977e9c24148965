#include "wheel/zip.h"

#include "core/read_write.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include <sys/stat.h>

namespace containerize::wheel {

namespace {

// The formats of headers: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
constexpr std::string_view end_mark = "PK\5\6", end_mark_64 = "PK\6\6", locator_mark = "PK\6\7";
constexpr std::string_view directory_mark = "PK\1\2", member_mark = "PK\3\4";
constexpr std::size_t end_size = 22, end_size_64 = 56, locator_size = 20;
constexpr std::size_t directory_entry_size = 46, member_header_size = 30;
constexpr std::size_t longest_comment = 0xFFFF;
/// For a million files with long names.
constexpr std::uint64_t largest_directory = 256U << 20U;
constexpr std::uint32_t see_zip64 = 0xFFFFFFFF;
constexpr unsigned stored = 0, deflated = 8;
constexpr std::size_t input_size = 256U << 10U, output_size = 1U << 20U;

std::unexpected<Error> malformed(std::string why) {
    return fail({.what = std::move(why)});
}

/// A number at a place that is known to exist, least significant byte first.
template<class Number>
Number number_at(std::string_view bytes, std::size_t at) {
    std::uint64_t number = 0;
    for (std::size_t i = sizeof(Number); i > 0; --i)
        number = number << 8U | static_cast<unsigned char>(bytes[at + i - 1]);
    return static_cast<Number>(number);
}
auto u16_at(std::string_view bytes, std::size_t at) {
    return number_at<std::uint16_t>(bytes, at);
}
auto u32_at(std::string_view bytes, std::size_t at) {
    return number_at<std::uint32_t>(bytes, at);
}
auto u64_at(std::string_view bytes, std::size_t at) {
    return number_at<std::uint64_t>(bytes, at);
}

Result<std::string> bytes_at(const OpenFile& file, std::uint64_t at, std::size_t size) {
    std::string bytes(size, '\0');
    const auto got = read_all_at(file.fd(), bytes.data(), size, static_cast<off_t>(at));
    if (got < 0) return malformed(std::strerror(errno));
    if (static_cast<std::size_t>(got) != size) return malformed("it is truncated");
    return bytes;
}

struct Directory {
    std::uint64_t at = 0, size = 0, count = 0;
};

/// The directory, if the file has the newer end record for large archives.
Result<Directory> find_directory_64(const OpenFile& file, std::uint64_t end) {
    if (end < locator_size + end_size_64) return malformed("it has no directory");
    const auto locator = TRY(bytes_at(file, end - locator_size, locator_size));
    const auto at = u64_at(locator, 8);
    if (!locator.starts_with(locator_mark) || at != end - locator_size - end_size_64)
        return malformed("its directory for large files is damaged");
    const auto record = TRY(bytes_at(file, at, end_size_64));
    if (!record.starts_with(end_mark_64)) return malformed("its directory for large files is damaged");
    const Directory found{.at = u64_at(record, 48), .size = u64_at(record, 40), .count = u64_at(record, 32)};
    if (found.size > at || found.at != at - found.size)
        return malformed("there is something before or in it");
    return found;
}

Result<Directory> find_directory(const OpenFile& file) {
    struct stat info {};
    if (fstat(file.fd(), &info) != 0) return malformed(std::strerror(errno));
    const auto size = static_cast<std::uint64_t>(info.st_size);
    const auto tail_size =
        static_cast<std::size_t>(std::min<std::uint64_t>(size, end_size + longest_comment));
    const std::string bytes = TRY(bytes_at(file, size - tail_size, tail_size));
    const std::string_view tail = bytes;
    auto at = tail.rfind(end_mark);
    // The comment, which may contain anything, ends with the file.
    while (at != tail.npos &&
           (tail.size() - at < end_size || at + end_size + u16_at(tail, at + 20) != tail.size()))
        at = at == 0 ? tail.npos : tail.rfind(end_mark, at - 1);
    if (at == tail.npos) return malformed("it is not a zip archive, or it is truncated");
    const auto end = size - tail_size + at;
    const auto record = tail.substr(at, end_size);
    const Directory found{.at = u32_at(record, 16), .size = u32_at(record, 12), .count = u16_at(record, 10)};
    if (found.at == see_zip64 || found.size == see_zip64 || found.count == 0xFFFF)
        return find_directory_64(file, end);
    if (found.at + found.size != end) return malformed("there is something before or in it");
    return found;
}

/// Reads those sizes and positions that are too large for the entry itself from its further fields.
bool read_large_numbers(std::string_view fields, ZipMember& member) {
    while (fields.size() >= 4) {
        const auto size = u16_at(fields, 2);
        if (fields.size() - 4U < size) return false;
        auto content = fields.substr(4, size);
        if (u16_at(fields, 0) == 1) {
            for (auto* number : {&member.size, &member.packed_size, &member.offset}) {
                if (*number != see_zip64) continue;
                if (content.size() < 8) return false;
                *number = u64_at(content, 0);
                content.remove_prefix(8);
            }
        }
        fields.remove_prefix(4U + size);
    }
    return true;
}

std::uint32_t time_of(unsigned date, unsigned time) {
    std::tm parts{};
    parts.tm_year = static_cast<int>(date >> 9U) + 80;
    parts.tm_mon = static_cast<int>(date >> 5U & 15U) - 1;
    parts.tm_mday = static_cast<int>(date & 31U);
    parts.tm_hour = static_cast<int>(time >> 11U);
    parts.tm_min = static_cast<int>(time >> 5U & 63U);
    parts.tm_sec = static_cast<int>(time & 31U) * 2;
    return static_cast<std::uint32_t>(std::clamp<time_t>(timegm(&parts), 0, 0xFFFFFFFF));
}

/// Takes an entry of the directory.
std::optional<ZipMember> take_member(std::string_view& bytes) {
    if (bytes.size() < directory_entry_size || !bytes.starts_with(directory_mark)) return std::nullopt;
    ZipMember member;
    member.encrypted = (u16_at(bytes, 8) & 1U) != 0;
    member.method = u16_at(bytes, 10);
    member.mtime = time_of(u16_at(bytes, 14), u16_at(bytes, 12));
    member.crc = u32_at(bytes, 16);
    member.packed_size = u32_at(bytes, 20);
    member.size = u32_at(bytes, 24);
    member.mode = u32_at(bytes, 38) >> 16U;
    member.offset = u32_at(bytes, 42);
    const std::size_t name = u16_at(bytes, 28);
    const std::size_t fields = u16_at(bytes, 30);
    const std::size_t whole = directory_entry_size + name + fields + u16_at(bytes, 32);
    if (bytes.size() < whole) return std::nullopt;
    member.name = bytes.substr(directory_entry_size, name);
    if (!read_large_numbers(bytes.substr(directory_entry_size + name, fields), member)) return std::nullopt;
    bytes.remove_prefix(whole);
    return member;
}

/// Whether each member ends before the next header begins. Overlapping ones make a small file unpack to
/// petabytes.
bool are_separate(const std::vector<ZipMember>& members, std::uint64_t end) {
    std::vector<const ZipMember*> by_offset;
    for (const auto& member : members)
        by_offset.push_back(&member);
    std::ranges::sort(by_offset, std::ranges::greater(), &ZipMember::offset);
    for (const auto* member : by_offset) {
        const auto header = member_header_size + member->name.size();
        if (member->offset > end || end - member->offset < header ||
            end - member->offset - header < member->packed_size)
            return false;
        end = member->offset;
    }
    return true;
}

} // namespace

Result<std::vector<ZipMember>> read_zip_directory(const OpenFile& file) {
    const auto directory = TRY(find_directory(file));
    if (directory.size > largest_directory) return malformed("its directory is too large");
    const auto bytes = TRY(bytes_at(file, directory.at, static_cast<std::size_t>(directory.size)));
    std::vector<ZipMember> members;
    std::string_view rest = bytes;
    while (!rest.empty()) {
        auto member = take_member(rest);
        if (!member) return malformed("its directory is damaged");
        members.push_back(std::move(*member));
    }
    if (members.size() != directory.count) return malformed("its directory is damaged");
    if (!are_separate(members, directory.at)) return malformed("files in it overlap");
    return members;
}

ZipReader::ZipReader(const OpenFile& file) : file_(file), input_(input_size), output_(output_size) {
    auto stream = std::make_unique<z_stream>();
    if (inflateInit2(stream.get(), -MAX_WBITS) != Z_OK) throw std::bad_alloc();
    stream_.reset(stream.release());
}

Status ZipReader::begin(const ZipMember& member) {
    const auto header = TRY(bytes_at(file_, member.offset, member_header_size + member.name.size()));
    if (!header.starts_with(member_mark) || u16_at(header, 8) != member.method ||
        u16_at(header, 26) != member.name.size() || header.substr(member_header_size) != member.name)
        return malformed("a file's header differs from the directory");
    member_ = member;
    at_ = member.offset + header.size() + u16_at(header, 28);
    left_ = member.packed_size;
    total_ = 0;
    crc_ = crc32(0, nullptr, 0);
    finished_ = false;
    stream_->avail_in = 0;
    inflateReset(stream_.get());
    return {};
}

Result<std::span<const std::byte>> ZipReader::read() {
    if (finished_) return std::span<const std::byte>();
    // One byte more than there should be shows that there is more.
    const auto room =
        static_cast<std::size_t>(std::min<std::uint64_t>(member_.size - total_ + 1, output_.size()));
    const auto got = TRY(member_.method == stored ? copy(room) : unpack(room));
    total_ += got;
    crc_ = crc32(crc_, output_.data(), static_cast<uInt>(got));
    if (total_ > member_.size) return malformed("a file in it is longer than declared");
    if (finished_ && total_ < member_.size) return malformed("a file in it is shorter than declared");
    if (finished_ && crc_ != member_.crc) return malformed("a file in it has the wrong checksum");
    return std::as_bytes(std::span(output_)).first(got);
}

Result<std::size_t> ZipReader::read_packed(std::vector<Bytef>& buffer, std::size_t most) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(most, left_));
    const auto got = read_all_at(file_.fd(), buffer.data(), wanted, static_cast<off_t>(at_));
    if (got < 0) return malformed(std::strerror(errno));
    if (static_cast<std::size_t>(got) != wanted) return malformed("it is truncated");
    at_ += wanted;
    left_ -= wanted;
    return wanted;
}

Result<std::size_t> ZipReader::copy(std::size_t room) {
    const auto got = TRY(read_packed(output_, room));
    finished_ = left_ == 0;
    return got;
}

Result<std::size_t> ZipReader::unpack(std::size_t room) {
    if (member_.method != deflated)
        return malformed("a file in it is compressed by the unknown method " +
                         std::to_string(member_.method));
    stream_->next_out = output_.data();
    stream_->avail_out = static_cast<uInt>(room);
    while (stream_->avail_out > 0 && !finished_) {
        if (stream_->avail_in == 0) {
            stream_->avail_in = static_cast<uInt>(TRY(read_packed(input_, input_.size())));
            stream_->next_in = input_.data();
        }
        const int code = inflate(stream_.get(), Z_NO_FLUSH);
        finished_ = code == Z_STREAM_END;
        if (!finished_ && code != Z_OK) return malformed("the compressed data of a file in it is damaged");
    }
    if (finished_ && (stream_->avail_in != 0 || left_ != 0))
        return malformed("something follows the compressed data of a file in it");
    return room - stream_->avail_out;
}

} // namespace containerize::wheel

#include "conda/repodata_file.h"

#include "conda/msgpack.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/read_write.h"
#include "util/digest.h"
#include "util/progress.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <bzlib.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zstd.h>

namespace containerize::conda {

namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 20U;
/// Real repodata compresses to a tenth, artificial files with one repeated package to a thousandth.
constexpr std::uint64_t largest_ratio = 5000;
constexpr std::uint64_t ratio_counts_from = 256U << 20U;

/// Checks the JSON and writes it to the output file.
class Sink {
public:
    Sink(const OpenFile& file, std::uint64_t largest, const std::string& name)
        : file_(file), largest_(largest), name_(name) {}

    Status take(std::string_view data, std::uint64_t packed) {
        if (interrupted()) return fail_interrupted();
        if (!begun_) TRY(check_start(data));
        total_ += data.size();
        const bool explodes = total_ > ratio_counts_from && total_ / largest_ratio > packed;
        if (total_ > largest_ || explodes)
            return refuse(
                fmt::format("it unpacks to more than {}", human_bytes(explodes ? total_ : largest_)));
        if (write_all(file_.fd(), data)) return {};
        return fail_errno("cannot write the package list", file_.path.string());
    }

    Status finish() {
        if (!begun_) return refuse("it is empty");
        // After a power failure, a file of the right size might otherwise lack its content.
        if (fsync(file_.fd()) != 0) return fail_errno("cannot write the package list", file_.path.string());
        return {};
    }

    [[nodiscard]] std::unexpected<Error> refuse(std::string why) const {
        return fail({.what = "cannot use this package list",
                     .why = std::move(why),
                     .where = name_,
                     .hint = "The server may be updating it. Try again later."});
    }

private:
    Status check_start(std::string_view data) {
        const auto first = data.find_first_not_of(" \t\r\n");
        if (first == std::string_view::npos) return {};
        begun_ = true;
        if (data[first] == '{') return {};
        return fail(
            {.what = "this is not a package list",
             .why = data.substr(first).starts_with('<') ? "it is a web page" : "it is not JSON",
             .where = name_,
             .hint = "Check the channel's URL. A proxy or a login page may answer instead of the server."});
    }

    const OpenFile& file_;
    std::uint64_t largest_;
    const std::string& name_;
    std::uint64_t total_ = 0;
    bool begun_ = false;
};

/// The input file, hashed while it is read.
struct ListSource {
    const OpenFile& file;
    Sha256 digest = {};
};

/// Passes the file in pieces to `take(data, bytes read so far)`.
template<class Take>
Status read_pieces(ListSource& source, const Take& take) {
    std::vector<char> buffer(buffer_size);
    std::uint64_t total = 0;
    for (;;) {
        const auto got =
            read_all_at(source.file.fd(), buffer.data(), buffer.size(), static_cast<off_t>(total));
        if (got < 0) return fail_errno("cannot read the file", source.file.path.string());
        if (got == 0) return {};
        source.digest.update(buffer.data(), static_cast<std::size_t>(got));
        total += static_cast<std::uint64_t>(got);
        TRY(take(std::string_view(buffer.data(), static_cast<std::size_t>(got)), total));
    }
}

Status copy_plain(ListSource& from, Sink& sink) {
    return read_pieces(from,
                       [&](std::string_view data, std::uint64_t packed) { return sink.take(data, packed); });
}

Status unpack_zstd(ListSource& from, Sink& sink) {
    const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                            &ZSTD_freeDStream);
    std::vector<char> output(buffer_size);
    std::size_t expects = 1;
    const auto take = [&](std::string_view data, std::uint64_t packed) -> Status {
        ZSTD_inBuffer in{data.data(), data.size(), 0};
        ZSTD_outBuffer out{output.data(), output.size(), 0};
        // If the output buffer is full, more output may be pending.
        do {
            out.pos = 0;
            expects = ZSTD_decompressStream(stream.get(), &out, &in);
            if (ZSTD_isError(expects) != 0)
                return sink.refuse(std::string("it is damaged: ") + ZSTD_getErrorName(expects));
            TRY(sink.take({output.data(), out.pos}, packed));
        } while (in.pos < in.size || out.pos == out.size);
        return {};
    };
    TRY(read_pieces(from, take));
    return expects == 0 ? Status() : sink.refuse("it is truncated");
}

class Bzip2 {
public:
    Bzip2() { BZ2_bzDecompressInit(&stream, 0, 0); }
    Bzip2(const Bzip2&) = delete;
    Bzip2& operator=(const Bzip2&) = delete;
    ~Bzip2() { BZ2_bzDecompressEnd(&stream); }
    /// Starts the next stream: a file may consist of several.
    void next() {
        bz_stream fresh{};
        fresh.next_in = stream.next_in;
        fresh.avail_in = stream.avail_in;
        BZ2_bzDecompressEnd(&stream);
        stream = fresh;
        BZ2_bzDecompressInit(&stream, 0, 0);
    }
    bz_stream stream{};
};

Status unpack_bzip2(ListSource& from, Sink& sink) {
    Bzip2 bzip2;
    auto& stream = bzip2.stream;
    std::vector<char> output(buffer_size);
    int state = BZ_OK;
    const auto take = [&](std::string_view data, std::uint64_t packed) -> Status {
        std::vector<char> input(data.begin(), data.end()); // the library wants writable input
        stream.next_in = input.data();
        stream.avail_in = static_cast<unsigned>(input.size());
        do {
            if (state == BZ_STREAM_END) bzip2.next();
            stream.next_out = output.data();
            stream.avail_out = static_cast<unsigned>(output.size());
            state = BZ2_bzDecompress(&stream);
            if (state != BZ_OK && state != BZ_STREAM_END) return sink.refuse("it is damaged");
            TRY(sink.take({output.data(), output.size() - stream.avail_out}, packed));
        } while (stream.avail_in > 0 || (state == BZ_OK && stream.avail_out == 0));
        return {};
    };
    TRY(read_pieces(from, take));
    return state == BZ_STREAM_END ? Status() : sink.refuse("it is truncated");
}

Status unpack_index(ListSource& from, Sink& sink) {
    std::string packed;
    TRY(read_pieces(from, [&](std::string_view data, std::uint64_t) -> Status {
        packed += data;
        return packed.size() <= largest_shard ? Status() : sink.refuse("it is too large");
    }));
    const auto json = unpack_shard(packed);
    if (!json) {
        auto refused = sink.refuse(json.error().why);
        refused.error().hint += "\n" + std::string(hint_to_whole_list);
        return refused;
    }
    return sink.take(*json, packed.size());
}

} // namespace

Result<std::string> unpack_shard(std::string_view packed) {
    const auto refuse = [](std::string why) {
        return fail({.what = "this part of a package list is damaged", .why = std::move(why)});
    };
    const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                            &ZSTD_freeDStream);
    std::string plain;
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    std::size_t expects = 1;
    while (expects != 0) {
        const auto before = plain.size();
        if (before >= largest_shard)
            return refuse(fmt::format("it unpacks to more than {}", human_bytes(largest_shard)));
        plain.resize(before + std::clamp(in.size * 4, std::size_t{4096}, buffer_size));
        ZSTD_outBuffer out{plain.data() + before, plain.size() - before, 0};
        expects = ZSTD_decompressStream(stream.get(), &out, &in);
        if (ZSTD_isError(expects) != 0) return refuse(ZSTD_getErrorName(expects));
        plain.resize(before + out.pos);
        if (expects != 0 && in.pos == in.size && out.pos < out.size) return refuse("it is truncated");
    }
    if (in.pos != in.size) return refuse("more data follows it");
    return json_of_msgpack(plain, 4 * largest_shard);
}

Result<std::string> unpack_repodata(const OpenFile& from, Packing packing, const OpenFile& to,
                                    std::uint64_t largest, const std::string& name) {
    Sink sink(to, largest, name);
    ListSource source{.file = from};
    const auto unpack = packing == Packing::shards  ? unpack_index
                        : packing == Packing::zstd  ? unpack_zstd
                        : packing == Packing::bzip2 ? unpack_bzip2
                                                    : copy_plain;
    TRY(unpack(source, sink));
    TRY(sink.finish());
    return source.digest.finish();
}

} // namespace containerize::conda

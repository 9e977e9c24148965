#include "base/tar_stream.h"

#include "util/progress.h"

#include <algorithm>

#include <fmt/format.h>

namespace containerize::base {

namespace {
constexpr std::size_t piece = 1U << 20U;
}

std::unexpected<Error> TarStream::broken(archive* of) const {
    if (failure_) return fail(Error(*failure_));
    const char* why = archive_error_string(of);
    return fail({.what = "the layer is damaged",
                 .why = why == nullptr ? "it is truncated" : why,
                 .where = layer_.name,
                 .hint = "Try again. If the error remains, tell the image's maintainers."});
}

la_ssize_t TarStream::read_compressed(const void** data) {
    auto bytes = source_();
    if (!bytes) {
        failure_ = std::move(bytes.error());
        return -1;
    }
    compressed_.update(bytes->data(), bytes->size());
    *data = bytes->data();
    return static_cast<la_ssize_t>(bytes->size());
}

la_ssize_t TarStream::read_tar(const void** data) {
    if (nothing_) return 0;
    const la_ssize_t got = archive_read_data(filter_.get(), plain_.data(), plain_.size());
    if (got < 0) {
        if (!failure_) failure_ = broken(filter_.get()).error();
        return -1;
    }
    bytes_ += static_cast<std::uint64_t>(got);
    if (bytes_ > limit_) {
        failure_ = Error{.what = "the image is too large",
                         .why = "its unpacked layers are larger than " + human_bytes(limit_),
                         .where = layer_.name,
                         .hint = "If this size is correct, raise `base_limit` in the configuration."};
        return -1;
    }
    tar_digest_.update(plain_.data(), static_cast<std::size_t>(got));
    *data = plain_.data();
    return got;
}

Result<std::unique_ptr<TarStream>> TarStream::open(const Layer& layer, std::uint64_t limit) {
    auto stream = std::unique_ptr<TarStream>(new TarStream(layer, limit));
    stream->source_ = TRY(layer.open());
    stream->plain_.resize(piece);
    stream->content_.resize(piece);

    archive* filter = stream->filter_.get();
    archive_read_support_filter_gzip(filter);
    archive_read_support_filter_zstd(filter);
    archive_read_support_format_raw(filter);
    archive_read_support_format_empty(filter);
    const auto read_filter = [](archive*, void* self, const void** data) {
        return static_cast<TarStream*>(self)->read_compressed(data);
    };
    archive_entry* whole = nullptr;
    int code = archive_read_open(filter, stream.get(), nullptr, read_filter, nullptr);
    if (code == ARCHIVE_OK) code = archive_read_next_header(filter, &whole);
    if (code != ARCHIVE_OK && code != ARCHIVE_EOF) return stream->broken(filter);
    stream->nothing_ = code == ARCHIVE_EOF;

    archive* tar = stream->tar_.get();
    archive_read_support_format_tar(tar);
    archive_read_support_format_empty(tar);
    const auto read_plain = [](archive*, void* self, const void** data) {
        return static_cast<TarStream*>(self)->read_tar(data);
    };
    if (archive_read_open(tar, stream.get(), nullptr, read_plain, nullptr) != ARCHIVE_OK)
        return stream->broken(tar);
    return stream;
}

Result<archive_entry*> TarStream::next() {
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(tar_.get(), &entry);
    if (code == ARCHIVE_EOF) return nullptr;
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return broken(tar_.get());
    return entry;
}

Result<std::span<const std::byte>> TarStream::read(std::uint64_t wanted) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, content_.size()));
    const la_ssize_t got = archive_read_data(tar_.get(), content_.data(), size);
    if (got <= 0) return broken(tar_.get());
    return std::span<const std::byte>(content_).first(static_cast<std::size_t>(got));
}

Status TarStream::verify() {
    const void* unused = nullptr;
    la_ssize_t got = 0;
    do
        got = read_tar(&unused);
    while (got > 0);
    // Bytes after the end of the compressed stream are part of the digest, too.
    while (got == 0 && (got = read_compressed(&unused)) > 0)
        got = 0;
    if (got < 0) return fail(Error(*failure_));
    const auto differs = [this](const std::string& expected, const std::string& digits,
                                std::string_view what) {
        return fail({.what = "the layer is not the one that the image lists",
                     .why = fmt::format("the digest of {} is sha256:{}, and not {}", what, digits, expected),
                     .where = layer_.name,
                     .hint = "Try again. If the error remains, do not use the image: something changes the "
                             "layer on the way."});
    };
    const auto as_it_came = compressed_.finish();
    const auto unpacked = tar_digest_.finish();
    if (!layer_.digest.empty() && layer_.digest != "sha256:" + as_it_came)
        return differs(layer_.digest, as_it_came, "its bytes");
    if (!layer_.diff_id.empty() && layer_.diff_id != "sha256:" + unpacked)
        return differs(layer_.diff_id, unpacked, "its content (diff_id)");
    return {};
}

} // namespace containerize::base

#include "util/digest.h"

#include "core/read_write.h"

#include <nettle/base16.h>
#include <nettle/nettle-meta.h>

namespace containerize {

// Nettle's: OpenSSL's would make the session program, which is copied to every installation, half as large
// again.
Digest::Digest(const nettle_hash& algorithm) : algorithm_(&algorithm), context_(algorithm.context_size) {
    algorithm.init(context_.data());
}

Sha256::Sha256() : Digest(nettle_sha256) {}
Md5::Md5() : Digest(nettle_md5) {}

void Digest::update(const void* data, std::size_t size) {
    algorithm_->update(context_.data(), size, static_cast<const std::uint8_t*>(data));
}

std::string Digest::finish() {
    std::vector<std::uint8_t> bytes(algorithm_->digest_size);
    algorithm_->digest(context_.data(), bytes.size(), bytes.data());
    std::string text(BASE16_ENCODE_LENGTH(bytes.size()), '\0');
    base16_encode_update(text.data(), bytes.size(), bytes.data());
    return text;
}

std::string sha256(std::string_view data) {
    Sha256 digest;
    digest.update(data.data(), data.size());
    return digest.finish();
}

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
    const auto file = TRY(OpenFile::open(path));
    return sha256_of_file(file);
}

Result<std::string> sha256_of_file(const OpenFile& file) {
    Sha256 digest;
    std::vector<char> buffer(std::size_t{1} << 20U);
    for (off_t at = 0;;) {
        const auto got = read_all_at(file.fd(), buffer.data(), buffer.size(), at);
        if (got < 0) return fail_errno("cannot read the file", file.path.string());
        if (got == 0) return digest.finish();
        digest.update(buffer.data(), static_cast<std::size_t>(got));
        at += got;
    }
}

} // namespace containerize

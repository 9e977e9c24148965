#include "util/digest.h"

#include "core/open_file.h"
#include "core/read_write.h"

#include <array>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include <openssl/evp.h>
#include <unistd.h>

namespace containerize {

struct Digest::State {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    explicit State(const EVP_MD* algorithm) {
        if (context == nullptr || EVP_DigestInit_ex(context, algorithm, nullptr) != 1) throw std::bad_alloc();
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { EVP_MD_CTX_free(context); }
};

Digest::Digest(std::unique_ptr<State> state) : state_(std::move(state)) {}
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;
Digest::~Digest() = default;

Sha256::Sha256() : Digest(std::make_unique<State>(EVP_sha256())) {}
Md5::Md5() : Digest(std::make_unique<State>(EVP_md5())) {}

void Digest::update(const void* data, std::size_t size) {
    EVP_DigestUpdate(state_->context, data, size);
}

std::string Digest::finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    EVP_DigestFinal_ex(state_->context, digest.data(), &size);
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    text.reserve(std::size_t{2} * size);
    for (unsigned i = 0; i < size; ++i) {
        text += digits[digest[i] >> 4U];
        text += digits[digest[i] & 15U];
    }
    return text;
}

std::string sha256(std::string_view data) {
    Sha256 digest;
    digest.update(data.data(), data.size());
    return digest.finish();
}

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
    const auto file = open_regular(path);
    if (!file) return fail(file.error());
    Sha256 digest;
    std::vector<char> buffer(std::size_t{1} << 20U);
    for (;;) {
        const auto got = read_all(file->get(), buffer.data(), buffer.size());
        if (got < 0) return fail_errno("cannot read the file", path.string());
        if (got == 0) return digest.finish();
        digest.update(buffer.data(), static_cast<std::size_t>(got));
    }
}

} // namespace containerize

#include "util/digest.h"

#include "util/fd.h"

#include <array>
#include <new>
#include <vector>

#include <fcntl.h>
#include <openssl/evp.h>

namespace containerize {

struct Sha256::State {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    State() {
        if (context == nullptr || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1)
            throw std::bad_alloc();
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::update(const void* data, std::size_t size) {
    EVP_DigestUpdate(state_->context, data, size);
}

std::string Sha256::finish() {
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
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return fail_errno("cannot read the file", path.string());
    Sha256 digest;
    std::vector<char> buffer(std::size_t{1} << 20U);
    for (;;) {
        const ssize_t got = read(file.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno("cannot read the file", path.string());
        if (got == 0) return digest.finish();
        digest.update(buffer.data(), static_cast<std::size_t>(got));
    }
}

} // namespace containerize

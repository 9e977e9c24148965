// SHA-256, and MD5 for package lists that have nothing better.
#pragma once

#include "core/error.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace containerize {

class Digest {
public:
    Digest(Digest&&) noexcept;
    Digest& operator=(Digest&&) noexcept;
    ~Digest();
    void update(const void* data, std::size_t size);
    /// Lower-case hexadecimal digits: 64 for SHA-256, 32 for MD5. The object must not be used afterwards.
    std::string finish();

protected:
    struct State;
    explicit Digest(std::unique_ptr<State> state);

private:
    std::unique_ptr<State> state_;
};

class Sha256 : public Digest {
public:
    Sha256();
};

class Md5 : public Digest {
public:
    Md5();
};

std::string sha256(std::string_view data);
Result<std::string> sha256_of_file(const std::filesystem::path& path);

} // namespace containerize

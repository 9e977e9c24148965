// SHA-256.
#pragma once

#include "util/error.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace containerize {

class Sha256 {
public:
    Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;
    ~Sha256();
    void update(const void* data, std::size_t size);
    /// 64 lower-case hexadecimal digits. The object is spent afterwards.
    std::string finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

std::string sha256(std::string_view data);
Result<std::string> sha256_of_file(const std::filesystem::path& path);

} // namespace containerize

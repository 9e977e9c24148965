// SHA-256, and MD5 for package lists that have nothing better.
#pragma once

#include "core/error.h"
#include "core/open_file.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

struct nettle_hash;

namespace containerize {

class Digest {
public:
    void update(const void* data, std::size_t size);
    /// Lower-case hexadecimal digits: 64 for SHA-256, 32 for MD5. The object then begins anew.
    std::string finish();

protected:
    explicit Digest(const nettle_hash& algorithm);

private:
    const nettle_hash* algorithm_;
    std::vector<std::uint8_t> context_;
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
/// From the file's beginning, wherever it was read last.
Result<std::string> sha256_of_file(const OpenFile& file);

} // namespace containerize

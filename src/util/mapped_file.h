// A large file as text in memory, read from disk where it is looked at, or at once.
#pragma once

#include "util/error.h"

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace containerize {

class MappedFile {
public:
    /// Zero bytes that can be read behind the text.
    static constexpr std::size_t padding = 64;

    /// Of a file that nobody changes or shortens while it is mapped.
    static Result<MappedFile> open(const std::filesystem::path& path);
    /// Of one that is open already; `path` is for messages.
    static Result<MappedFile> map(int file, const std::filesystem::path& path);
    /// Reads all of one that others may change.
    static Result<MappedFile> copy(const std::filesystem::path& path);
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    [[nodiscard]] std::string_view text() const { return {address_, size_}; }

private:
    MappedFile() = default;
    static Result<MappedFile> reserve(int file, const std::filesystem::path& path, int protection);
    char* address_ = nullptr;
    std::size_t size_ = 0, reserved_ = 0;
};

} // namespace containerize

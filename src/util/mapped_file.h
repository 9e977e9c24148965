// A large file as text in memory, read from disk where it is looked at.
#pragma once

#include "util/error.h"
#include "util/open_file.h"

#include <cstddef>
#include <string_view>

namespace containerize {

class MappedFile {
public:
    /// Zero bytes that can be read behind the text.
    static constexpr std::size_t padding = 64;

    /// Of a file that nobody changes or shortens while it is mapped.
    static Result<MappedFile> map(const OpenFile& file);
    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile();

    [[nodiscard]] std::string_view text() const { return {address_, size_}; }

private:
    MappedFile() = default;
    char* address_ = nullptr;
    std::size_t size_ = 0, reserved_ = 0;
};

} // namespace containerize

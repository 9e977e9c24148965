// A large file mapped as text, so that only what is used is read from disk.
#pragma once

#include "core/error.h"
#include "core/open_file.h"

#include <cstddef>
#include <string_view>

namespace containerize {

class MappedFile {
public:
    /// Zero bytes that can be read after the text.
    static constexpr std::size_t padding = 64;

    /// The file must not change or shrink while it is mapped.
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

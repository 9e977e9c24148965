// A large file mapped as text, so that only what is used is read from disk.
#pragma once

#include "core/error.h"
#include "core/open_file.h"

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

namespace containerize {

class MappedFile {
public:
    /// Zero bytes that can be read after the text.
    static constexpr std::size_t padding = 64;

    /// The file must not change or shrink while it is mapped.
    static Result<MappedFile> map(const OpenFile& file);
    [[nodiscard]] std::string_view text() const {
        return memory_ ? std::string_view(memory_.get(), memory_.get_deleter().size) : std::string_view();
    }

private:
    struct Unmap {
        std::size_t size; ///< of the text
        void operator()(char* memory) const;
    };
    explicit MappedFile(std::unique_ptr<char, Unmap> memory) : memory_(std::move(memory)) {}
    std::unique_ptr<char, Unmap> memory_;
};

} // namespace containerize

// A harness is one function that gets arbitrary bytes. It must return for every input, without a crash, a
// sanitizer's report, or more memory or time than tests/fuzz/run.sh allows.
#pragma once

#include "core/error.h"
#include "core/fd.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace containerize::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// Whatever the input is, this must hold; otherwise it is a finding.
inline void require(bool holds) {
    if (!holds) std::abort();
}

/// Every message must say something, and contain no control characters that a terminal would obey.
inline void require_message(const Error& error) {
    const auto text = to_string(error);
    require(!error.what.empty() && text.size() < 20'000);
    require(std::ranges::none_of(
        text, [](unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; }));
}

/// Whether there is a result. If not, checks the message.
template<class T>
bool good(const std::expected<T, Error>& result) {
    if (!result) require_message(result.error());
    return result.has_value();
}

/// Like good(), for a file that the user gave: an error must have the exit code 2.
template<class T>
bool good_input(const std::expected<T, Error>& result) {
    require(result || result.error().fault == Fault::input);
    return good(result);
}

/// Splits an input that stands for several files at 0xFF, a byte that no text contains.
inline std::vector<std::string_view> parts_of(std::string_view input, std::size_t count) {
    std::vector<std::string_view> parts;
    while (parts.size() + 1 < count) {
        const auto end = std::min(input.find('\xff'), input.size());
        parts.push_back(input.substr(0, end));
        input.remove_prefix(std::min(end + 1, input.size()));
    }
    parts.push_back(input);
    return parts;
}

/// A file in memory.
inline Fd file_of(std::string_view bytes) {
    Fd file(memfd_create("fuzz", MFD_CLOEXEC));
    while (!bytes.empty()) {
        const auto written = write(file.get(), bytes.data(), bytes.size());
        if (written <= 0) throw std::runtime_error("cannot write a file in memory");
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return file;
}

} // namespace containerize::fuzz

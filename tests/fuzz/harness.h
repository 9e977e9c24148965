// What a harness is: one function that is given bytes which nobody has checked. Whatever it does with them,
// it must come back: without a crash, a sanitizer's report, more memory or more time than tests/fuzz/run.sh
// allows.
#pragma once

#include "util/fd.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace containerize::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// What must hold whatever the input is; anything else is a finding.
inline void require(bool holds) {
    if (!holds) std::abort();
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

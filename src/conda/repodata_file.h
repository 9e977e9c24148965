// The file formats in which channels offer repodata, and how to unpack them.
#pragma once

#include "core/error.h"
#include "core/open_file.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace containerize::conda {

enum class Packing { zstd, bzip2, none };

struct RepodataForm {
    std::string_view file;
    Packing packing;
};

/// Smallest first.
inline constexpr std::array repodata_forms = {RepodataForm{"repodata.json.zst", Packing::zstd},
                                              RepodataForm{"repodata.json.bz2", Packing::bzip2},
                                              RepodataForm{"repodata.json", Packing::none}};

/// Unpacks `from` into the empty, writable file `to` and returns the SHA-256 of the input. Fails if it is
/// damaged or no JSON object, or if the output exceeds `largest` bytes or a plausible compression ratio.
/// `name` is for messages.
Result<std::string> unpack_repodata(const OpenFile& from, Packing packing, const OpenFile& to,
                                    std::uint64_t largest, const std::string& name);

} // namespace containerize::conda

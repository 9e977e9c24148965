// The forms in which a channel offers a package list, and how each becomes plain JSON.
#pragma once

#include "util/error.h"
#include "util/open_file.h"

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

/// The smallest first.
inline constexpr std::array repodata_forms = {RepodataForm{"repodata.json.zst", Packing::zstd},
                                              RepodataForm{"repodata.json.bz2", Packing::bzip2},
                                              RepodataForm{"repodata.json", Packing::none}};

/// Unpacks `from` into the empty file `to`, which is open for writing, too; returns the sha256 of what has
/// been read. An error if it is damaged, no JSON object, or grows beyond `largest` bytes or out of all
/// proportion to its size. `name` is what messages call it.
Result<std::string> unpack_repodata(const OpenFile& from, Packing packing, const OpenFile& to,
                                    std::uint64_t largest, const std::string& name);

} // namespace containerize::conda

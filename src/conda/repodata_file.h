// The file formats in which channels offer repodata, and how to unpack them.
#pragma once

#include "core/error.h"
#include "core/open_file.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace containerize::conda {

enum class Packing { shards, zstd, bzip2, none };

struct RepodataForm {
    std::string_view file;
    Packing packing;
};

/// The index of the shards of a list (CEP 16), each of which has the records of one name.
inline constexpr RepodataForm shard_index{"repodata_shards.msgpack.zst", Packing::shards};

/// Smallest first.
inline constexpr std::array repodata_forms = {shard_index, RepodataForm{"repodata.json.zst", Packing::zstd},
                                              RepodataForm{"repodata.json.bz2", Packing::bzip2},
                                              RepodataForm{"repodata.json", Packing::none}};

/// Of a shard, or the index, in bytes. Of conda-forge's, the largest have 1 MB, or 10 MB as JSON.
inline constexpr std::size_t largest_shard = 64U << 20U;

/// Follows an error about shards.
inline constexpr std::string_view hint_to_whole_list =
    "`repodata_use_shards: false` in .condarc uses the channel's whole list instead.";

/// The ending of the name of a shard in the cache, which begins with its digest.
inline constexpr std::string_view shard_ending = ".shard";

/// Returns a shard, or the index, as JSON text. Fails if it is damaged or too large.
Result<std::string> unpack_shard(std::string_view packed);

/// Unpacks `from` into the empty, writable file `to`, as JSON, and returns the SHA-256 of the input. Fails if
/// it is damaged or no JSON object, or if the output exceeds `largest` bytes or a plausible compression
/// ratio. `name` is for messages.
Result<std::string> unpack_repodata(const OpenFile& from, Packing packing, const OpenFile& to,
                                    std::uint64_t largest, const std::string& name);

} // namespace containerize::conda

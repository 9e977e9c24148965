// Reads MessagePack, the format of sharded package lists.
#pragma once

#include "core/error.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace containerize::conda {

/// Returns the document as JSON text, with byte strings as hexadecimal digits: shards contain checksums as
/// bytes that package lists contain as digits. Fails if it is damaged, nested deeply, has keys that are no
/// text, or needs more than `largest` bytes as JSON.
Result<std::string> json_of_msgpack(std::string_view packed, std::size_t largest);

} // namespace containerize::conda

// Messages through Unix sockets, with which a descriptor can go to another process.
#pragma once

#include "util/fd.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace containerize {

struct FdMessage {
    std::string text; ///< empty at the other side's end
    Fd file;          ///< none, or what came with it
};

/// `text` is not empty; `file` may be -1. False if there is nobody at the other side, or no room.
bool send_message(int socket, std::string_view text, int file);
/// The next message, of at most `limit` bytes.
FdMessage receive_message(int socket, std::size_t limit);

} // namespace containerize

// Messages over Unix sockets, which can carry a file descriptor.
#pragma once

#include "core/fd.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace containerize {

struct FdMessage {
    std::string text; ///< empty at end of file, or on an error
    Fd file;          ///< the descriptor that came with it, if any
};

/// Whether the other end of a connection belongs to this user.
bool is_our_own(const Fd& connection);

/// `text` is not empty; `file` may be -1. Returns false if there is no peer, or no room.
bool send_message(int socket, std::string_view text, int file);
/// Receives the next message, of at most `limit` bytes.
FdMessage receive_message(int socket, std::size_t limit);

} // namespace containerize

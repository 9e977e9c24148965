#include "core/fd_message.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <sys/socket.h>

namespace containerize {

namespace {

/// A message's header and data, with room for one descriptor.
struct Parts {
    iovec data;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};

    Parts(void* begin, std::size_t size) : data{.iov_base = begin, .iov_len = size} {
        header.msg_iov = &data;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
    }
    Parts(const Parts&) = delete; // it points into itself
    Parts& operator=(const Parts&) = delete;
    ~Parts() = default;
};

} // namespace

bool is_our_own(const Fd& connection) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

bool send_message(int socket, std::string_view text, int file) {
    Parts message(const_cast<char*>(text.data()), text.size());
    if (file >= 0) {
        auto* beside = CMSG_FIRSTHDR(&message.header);
        beside->cmsg_level = SOL_SOCKET;
        beside->cmsg_type = SCM_RIGHTS;
        beside->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(beside), &file, sizeof file);
    } else {
        message.header.msg_controllen = 0;
    }
    ssize_t sent = -1;
    do
        sent = sendmsg(socket, &message.header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == static_cast<ssize_t>(text.size());
}

FdMessage receive_message(int socket, std::size_t limit) {
    FdMessage received{.text = std::string(limit, '\0'), .file = {}};
    Parts message(received.text.data(), limit);
    ssize_t got = -1;
    do
        got = recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    received.text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    const auto* beside = got > 0 ? CMSG_FIRSTHDR(&message.header) : nullptr;
    if (beside == nullptr || beside->cmsg_type != SCM_RIGHTS) return received;
    // A sender may pass more than one. They are all ours now, so the others are closed.
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= beside->cmsg_len; at += sizeof(int)) {
        int number = -1;
        std::memcpy(&number, reinterpret_cast<const std::byte*>(beside) + at, sizeof number);
        Fd file(number);
        if (!received.file) received.file = std::move(file);
    }
    return received;
}

} // namespace containerize

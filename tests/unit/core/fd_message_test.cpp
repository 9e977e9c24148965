#include "core/fd_message.h"

#include <cstring>
#include <filesystem>
#include <iterator>

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace containerize {
namespace {

std::ptrdiff_t open_descriptors() {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(FdMessage, OneDescriptorIsKept) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const Fd ours(ends[0]), theirs(ends[1]);
    constexpr int count = 3;
    char text[] = "x";
    iovec part{.iov_base = text, .iov_len = 1};
    alignas(cmsghdr) char beside[CMSG_SPACE(count * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = beside;
    message.msg_controllen = sizeof beside;
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    const int sent[count] = {0, 1, 2};
    std::memcpy(CMSG_DATA(header), sent, sizeof sent);
    const auto before = open_descriptors();
    ASSERT_EQ(sendmsg(theirs.get(), &message, 0), 1);
    const auto received = receive_message(ours.get(), 8);
    EXPECT_EQ(received.text, "x");
    EXPECT_TRUE(received.file);
    EXPECT_EQ(open_descriptors(), before + 1);
}

} // namespace
} // namespace containerize

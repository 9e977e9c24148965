// Requests from the kernel, or from anybody who has the descriptor, to servers of valid and invalid images.
// The kernel must be able to accept each answer.
#include "../unit/temporary.h"
#include "fuse/server.h"
#include "image/writer.h"
#include "image_input.h"

#include <array>
#include <thread>
#include <vector>

#include <linux/fuse.h>
#include <sys/socket.h>

using namespace containerize;

namespace {

constexpr std::size_t most_requests = 50;
/// The longest message of a socket; a server's answers can be longer.
constexpr std::size_t longest_answer = 1U << 20U;

struct Request {
    std::uint8_t kind;
    std::uint8_t size; ///< of the body
    std::uint64_t node;
} __attribute__((packed));

std::string packed_tree(std::string_view upper) {
    const test::TemporaryDirectory directory;
    auto writer = image::Writer::create(directory.path() / "image", {});
    const auto file = [&](const std::string& path, std::size_t size, image::Attributes attributes) {
        const std::vector<std::byte> content(size, std::byte{'x'});
        return writer && writer->begin_file(path, attributes) && writer->append(content) &&
               writer->end_file();
    };
    bool done = file("a/small", 100, {}) && file("a/large", 300'000, {.xattrs = {{"user.x", "y"}}}) &&
                file(std::string("a/").append(upper), 5, {});
    done = done && writer->add_hardlink("b", "a/small") && writer->add_symlink("a/link", "small", {});
    done = done && (upper != "upper" || writer->add_whiteout("a/lower")) && writer->finish();
    fuzz::require(done);
    return *read_file(directory.path() / "image");
}

std::vector<image::Layers::ImageFile> images_of(std::string_view input) {
    static const std::string lower = packed_tree("lower"), upper = packed_tree("upper");
    std::vector<image::Layers::ImageFile> files;
    if (!input.empty())
        files.push_back(fuzz::image_file_of(input));
    else
        for (const std::string_view whole : {lower, upper})
            files.push_back({.file = fuzz::file_of(whole), .path = "image", .offset = 0});
    return files;
}

std::vector<std::byte> message_of(std::string_view& input, std::uint64_t number) {
    const auto request = fuzz::take<Request>(input);
    const auto body = fuzz::take(input, request.size);
    const fuse_in_header header{.len = static_cast<std::uint32_t>(sizeof header + body.size()),
                                .opcode = request.kind,
                                .unique = number,
                                .nodeid = request.node,
                                .uid = 0,
                                .gid = 0,
                                .pid = 1,
                                .total_extlen = 0,
                                .padding = 0};
    std::vector<std::byte> message(sizeof header + body.size());
    std::memcpy(message.data(), &header, sizeof header);
    std::memcpy(message.data() + sizeof header, body.data(), body.size());
    return message;
}

/// Checks the answers that have arrived.
void take_answers(int kernel, std::uint64_t last, bool wait) {
    static std::array<std::byte, longest_answer> answer;
    for (;;) {
        const auto got = recv(kernel, answer.data(), answer.size(), wait ? 0 : MSG_DONTWAIT);
        if (got <= 0) return;
        fuse_out_header header;
        fuzz::require(static_cast<std::size_t>(got) >= sizeof header);
        std::memcpy(&header, answer.data(), sizeof header);
        fuzz::require(header.len == static_cast<std::size_t>(got) && header.unique <= last);
        fuzz::require(header.error == 0 ||
                      (header.error < 0 && header.error > -512 && header.len == sizeof header));
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto parts = fuzz::images_in(fuzz::text_of(data, size), 2);
    const auto layers =
        image::Layers::open(images_of(parts.size() == 2 ? parts.front() : std::string_view()));
    if (!layers) return 0;
    std::array<int, 2> ends{};
    fuzz::require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    const Fd kernel(ends[0]);
    fuse::FuseConnection connection;
    connection.devices.emplace_back(ends[1]);
    auto requests = parts.back();
    const bool names = fuzz::take<std::uint8_t>(requests) % 2 != 0;
    std::jthread server([&] {
        serve_fuse(**layers, connection,
                   {.root = fuse::MountRoot::tree_and_layers,
                    .hard_links = names ? fuse::HardLinks::separate_files : fuse::HardLinks::one_file});
        connection.devices.clear(); // closes the socket after the last answer
    });
    std::uint64_t number = 0;
    while (!requests.empty() && number < most_requests) {
        const auto message = message_of(requests, ++number);
        if (send(kernel.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0) break;
        take_answers(kernel.get(), number, false);
    }
    shutdown(kernel.get(), SHUT_WR);
    take_answers(kernel.get(), number, true);
    return 0;
}

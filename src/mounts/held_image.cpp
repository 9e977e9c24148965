#include "mounts/held_image.h"

#include "core/fd_message.h"
#include "core/interrupt.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace containerize::mounts {

namespace fs = std::filesystem;

namespace {

constexpr int patience_ms = 1000; // a holder answers at once, unless it is suspended

struct Address {
    sockaddr_un name{};
    socklen_t size = 0;
};

/// The abstract address of an image's copy. Anybody can bind such a name, so both sides check the peer's uid.
Address address_of(const std::string& sha256) {
    Address address;
    address.name.sun_family = AF_UNIX;
    // The first byte of an abstract name is NUL.
    const auto name = "containerize/" + std::to_string(geteuid()) + "/" + sha256;
    const auto size = std::min(name.size(), sizeof address.name.sun_path - 1);
    std::memcpy(address.name.sun_path + 1, name.data(), size);
    address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
    return address;
}

Fd unix_socket() {
    return Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Fd receive_file(const Fd& connection) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::milliseconds(patience_ms);
    pollfd ready{.fd = connection.get(), .events = POLLIN, .revents = 0};
    int count = -1;
    do { // a session that starts is interrupted every second, for its signs of life
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        count = poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    } while (count < 0 && errno == EINTR);
    if (count != 1) return {};
    return receive_message(connection.get(), 1).file;
}

struct Held {
    Fd connection, file;
};

/// Asks the holder that owns the name.
std::optional<Held> ask_for(const std::string& sha256, std::uint64_t size) {
    Held held{.connection = unix_socket(), .file = {}};
    const auto address = address_of(sha256);
    if (connect(held.connection.get(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0 ||
        !is_our_own(held.connection))
        return std::nullopt;
    held.file = receive_file(held.connection);
    struct stat info {};
    if (!held.file || fstat(held.file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
        static_cast<std::uint64_t>(info.st_size) != size)
        return std::nullopt;
    return held;
}

/// Returns no descriptor if the name is taken. Nobody can connect before listen().
Fd take_name(const std::string& sha256) {
    Fd listener = unix_socket();
    const auto address = address_of(sha256);
    if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0) return {};
    return listener;
}

/// Opens the copy again for reading only, so that no session can change what others read.
Result<Fd> for_reading(const Fd& file, const fs::path& path) {
    Fd reading(open(path_of(file).c_str(), O_RDONLY | O_CLOEXEC));
    if (!reading) return fail_errno("cannot open the copy of the image", path.string());
    return reading;
}

/// Opens a file that was brought to this node, and unlinks it.
Result<Fd> take(const fs::path& path) {
    Fd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info {};
    if (!file || fstat(file.get(), &info) != 0) return fail_errno("cannot open the file", path.string());
    if (info.st_uid != geteuid() || !S_ISREG(info.st_mode))
        return fail({.what = "this file is not the image", .where = path.string()});
    unlink(path.c_str());
    return file;
}

/// The copy: that file itself or, for `ram`, its content in memory.
Result<Fd> copy_of_brought(Fd file, const fs::path& path, const manifest::ImageFile& image,
                           manifest::StagePlace place) {
    struct stat info {};
    if (fstat(file.get(), &info) != 0 || static_cast<std::uint64_t>(info.st_size) != image.size)
        return fail({.what = "this file is not the image", .where = path.string()});
    if (place == manifest::StagePlace::ram) {
        auto copy = stage_image(file, path, image.size, image.sha256, place);
        return copy ? for_reading(*copy, path) : std::move(copy);
    }
    TRY(verify_image(file, path, image.size, image.sha256));
    return file;
}

} // namespace

std::optional<Fd> held_image(const std::string& sha256, std::uint64_t size) {
    auto held = ask_for(sha256, size);
    if (!held) return std::nullopt;
    return std::move(held->file);
}

Result<ImageHolder> ImageHolder::hold(const manifest::Manifest& manifest, const fs::path& prefix,
                                      manifest::StagePlace place, const std::vector<fs::path>& brought) {
    ImageHolder holder;
    std::vector<Result<Fd>> taken; // all first, so that they are unlinked even if something fails
    for (const auto& file : brought)
        taken.push_back(take(file));
    const auto files = manifest.images();
    taken.resize(files.size());
    auto sources = TRY(manifest::open_images(manifest, prefix));
    for (std::size_t i = 0; i < files.size(); ++i)
        TRY(holder.add(files[i], sources[i], std::move(taken[i]),
                       i < brought.size() ? brought[i] : fs::path(), place));
    // Only when all copies are there, because no client is answered before serve().
    for (const auto& image : holder.images_)
        if (image.listener) listen(image.listener.get(), SOMAXCONN); // cannot fail for a bound socket
    return holder;
}

Status ImageHolder::add(const manifest::ImageFile& file, const image::Layers::ImageFile& source,
                        Result<Fd> taken, const fs::path& brought, manifest::StagePlace place) {
    images_.push_back({.sha256 = file.sha256, .size = file.size, .listener = take_name(file.sha256)});
    auto& image = images_.back();
    if (!image.listener) {
        // The copy of the holder that owns the name.
        if (auto held = ask_for(image.sha256, image.size)) {
            image.copy = std::move(held->file);
            image.other = std::move(held->connection);
            return {};
        }
    }
    Result<Fd> copy;
    if (taken && *taken) copy = copy_of_brought(std::move(*taken), brought, file, place);
    if (!taken) notes_.push_back(to_string(taken.error()));
    if (!copy) notes_.push_back(to_string(copy.error()));
    if (!copy || !*copy) {
        copy = stage_image(source.file, source.path, file.size, file.sha256, place);
        if (copy) copy = for_reading(*copy, source.path);
    }
    image.copy = TRY(std::move(copy));
    return {};
}

void ImageHolder::serve() {
    while (!interrupted()) {
        std::vector<pollfd> waiting = {{.fd = interrupt_fd(), .events = POLLIN, .revents = 0}};
        const auto wait_for = [&](const Fd& fd) {
            waiting.push_back({.fd = fd.get(), .events = POLLIN, .revents = 0});
        };
        for (const auto& image : images_)
            wait_for(image.listener), wait_for(image.other);
        for (const auto& client : clients_)
            wait_for(client);
        // The name may be owned by another user, or by a holder that does not answer yet: try again.
        const auto has_no_place = [](const Image& image) { return !image.listener && !image.other; };
        const int patience = std::ranges::any_of(images_, has_no_place) ? patience_ms : -1;
        if (poll(waiting.data(), waiting.size(), patience) < 0) continue;
        const auto answered = std::span(waiting).subspan(1);
        for (std::size_t i = clients_.size(); i-- > 0;)
            if (answered[2 * images_.size() + i].revents != 0)
                clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
        for (std::size_t i = 0; i < images_.size(); ++i) {
            if (answered[2 * i].revents != 0) answer(images_[i]);
            if (answered[2 * i + 1].revents != 0 || has_no_place(images_[i])) succeed(images_[i]);
        }
    }
}

void ImageHolder::answer(const Image& image) {
    Fd client(accept4(image.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    // The connection stays pending: without a pause, this would be a busy loop.
    if (!client && (errno == EMFILE || errno == ENFILE))
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!client || !is_our_own(client)) return;
    send_message(client.get(), "f", image.copy.get()); // a session that gets no file copies the image itself
    clients_.push_back(std::move(client));
}

void ImageHolder::succeed(Image& image) {
    image.other.reset();
    image.listener = take_name(image.sha256);
    if (image.listener)
        listen(image.listener.get(), SOMAXCONN);
    else if (auto held = ask_for(image.sha256, image.size))
        image.other = std::move(held->connection); // another holder was faster
}

} // namespace containerize::mounts

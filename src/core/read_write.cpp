#include "core/read_write.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <unistd.h>

namespace containerize {

namespace {

/// Calls `transfer(done)` until all is done, or nothing is left; returns -1 on failure.
template<class Transfer>
ssize_t repeat(std::size_t size, const Transfer& transfer) {
    std::size_t done = 0;
    while (done < size) {
        const ssize_t moved = transfer(done);
        if (moved < 0 && errno == EINTR) continue;
        if (moved < 0) return -1;
        if (moved == 0) break;
        done += static_cast<std::size_t>(moved);
    }
    return static_cast<ssize_t>(done);
}

} // namespace

ssize_t read_all(int fd, void* data, std::size_t size) {
    auto* const bytes = static_cast<char*>(data);
    return repeat(size, [&](std::size_t done) { return read(fd, bytes + done, size - done); });
}

ssize_t read_all_at(int fd, void* data, std::size_t size, off_t offset) {
    auto* const bytes = static_cast<char*>(data);
    return repeat(size, [&](std::size_t done) {
        return pread(fd, bytes + done, size - done, offset + static_cast<off_t>(done));
    });
}

std::string read_from_start(int fd) {
    std::string bytes;
    std::array<char, 16384> buffer;
    ssize_t got = 0;
    // Only at its end does a file give less than it is asked for: one call is enough for most.
    do {
        got = pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(bytes.size()));
        bytes.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    } while (got == static_cast<ssize_t>(buffer.size()) || (got < 0 && errno == EINTR));
    return bytes;
}

bool write_all(int fd, std::string_view data) {
    return repeat(data.size(), [&](std::size_t done) {
               return write(fd, data.data() + done, data.size() - done);
           }) == static_cast<ssize_t>(data.size());
}

bool write_all_at(int fd, std::string_view data, off_t offset) {
    return repeat(data.size(), [&](std::size_t done) {
               return pwrite(fd, data.data() + done, data.size() - done, offset + static_cast<off_t>(done));
           }) == static_cast<ssize_t>(data.size());
}

} // namespace containerize

// A file descriptor that closes itself.
#pragma once

#include <string>
#include <utility>

#include <unistd.h>

namespace containerize {

class [[nodiscard]] Fd {
public:
    Fd() = default;
    explicit Fd(int fd) : fd_(fd) {}
    Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    ~Fd() { reset(); }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }
    explicit operator bool() const { return fd_ >= 0; }
    void reset(int fd = -1) {
        if (fd_ >= 0) ::close(fd_);
        fd_ = fd;
    }

private:
    int fd_ = -1;
};

/// A path to the open file, for calls that take a path.
inline std::string path_of(const Fd& fd) {
    return "/proc/self/fd/" + std::to_string(fd.get());
}

/// Closes all but `kept` and the standard streams. Async-signal-safe.
inline void close_all_but(int kept) {
    for (int fd = STDERR_FILENO + 1; fd < kept; ++fd)
        ::close(fd);
    ::closefrom(kept + 1);
}

} // namespace containerize

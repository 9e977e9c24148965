// Progress of long work: a bar on a terminal, plain lines in a log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace containerize {

/// One stage of a build ("Installing packages"), from start to finish, shown through util/log.h: on a
/// terminal by a line that is redrawn at most ten times a second, elsewhere by one line each for start and
/// finish. It is also a row of util/timings.h.
class Stage {
public:
    explicit Stage(std::string title);
    ~Stage(); ///< without finish(), the stage is shown as failed
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    /// In bytes. A `total` of 0 means unknown, and shows only the count. `rate`, in bytes per second, is
    /// shown with what is left, unless it is 0.
    void advance(std::uint64_t done, std::uint64_t total, double rate = 0);
    /// What is being processed: a file, a package.
    void detail(std::string_view what);
    /// "Installing packages: 1,204 files, 217.3 MB in 12.4 s", where `summary` is the text between ": " and "
    /// in".
    void finish(std::string_view summary = {});

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Cuts at a character boundary of UTF-8. Counts bytes, which are at least as many as columns.
std::string fit(std::string text, std::size_t width);
std::string human_bytes(std::uint64_t bytes);  ///< "217.3 MB", powers of 1000
std::string human_count(std::uint64_t number); ///< "1,204"
/// "1 file", "1,204 files". An empty `plural` is the unit with an "s".
std::string counted(std::uint64_t number, std::string_view unit, std::string_view plural = {});
std::string human_seconds(double seconds); ///< "0.4 s", "12.4 s", "3 min 05 s"

} // namespace containerize

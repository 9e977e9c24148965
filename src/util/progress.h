// Progress of long work: a bar on a terminal, plain lines in a log.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace containerize {

/// One stage of a build ("Installing packages"), from its start to its finish. Prints through util/log.h.
/// On a terminal a line is redrawn at most ten times a second; elsewhere start and finish are one line each.
class Stage {
public:
    explicit Stage(std::string title);
    ~Stage(); ///< without finish(): shown as failed
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    /// `total` 0 means unknown: then no bar, only the count. Unit: bytes.
    /// `rate`, in bytes a second, is shown with what is left where it is not 0.
    void advance(std::uint64_t done, std::uint64_t total, double rate = 0);
    /// What is being done now: a file, a package.
    void detail(std::string_view what);
    /// "Installing packages: 1,204 files, 217.3 MB in 12.4 s"; `summary` is what stands between ": " and "
    /// in".
    void finish(std::string_view summary = {});

private:
    struct State;
    std::unique_ptr<State> state_;
};

std::string human_bytes(std::uint64_t bytes);  ///< "217.3 MB", powers of 1000
std::string human_count(std::uint64_t number); ///< "1,204"
std::string human_seconds(double seconds);     ///< "0.4 s", "12.4 s", "3 min 05 s"

} // namespace containerize

#include "util/progress.h"

#include "util/log.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace containerize {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto redraw_every = std::chrono::milliseconds(100);
constexpr std::size_t bar_width = 24;

std::size_t terminal_width() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

} // namespace

struct Stage::State {
    std::string title;
    Clock::time_point start = Clock::now();
    Clock::time_point drawn;
    std::mutex mutex;
    std::string what;
    std::uint64_t done = 0, total = 0;
    bool finished = false;
    bool draws = isatty(STDERR_FILENO) != 0 && log::level() == log::Level::normal;

    void draw() {
        if (!draws || Clock::now() - drawn < redraw_every) return;
        drawn = Clock::now();
        std::string line = title;
        if (total > 0) {
            const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
            const auto full = static_cast<std::size_t>(part * bar_width);
            line += fmt::format(" [{}{}] {:3.0f} %", std::string(full, '='),
                                std::string(bar_width - full, ' '), part * 100);
        } else if (done > 0) {
            line += " " + human_bytes(done);
        }
        line +=
            fmt::format(" {}", human_seconds(std::chrono::duration<double>(Clock::now() - start).count()));
        if (!what.empty()) line += "  " + what;
        line.resize(std::min(line.size(), terminal_width() - 1));
        line = "\r" + line + "\033[K";
        [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
    }
    void clear() const {
        static constexpr std::string_view erase = "\r\033[K";
        if (draws) [[maybe_unused]]
            const auto written = write(STDERR_FILENO, erase.data(), erase.size());
    }
};

Stage::Stage(std::string title) : state_(std::make_unique<State>()) {
    state_->title = std::move(title);
    // On a terminal the line that is drawn says it, and the one at the end stays.
    if (state_->draws)
        log::detail(state_->title + " ...");
    else
        log::info(state_->title + " ...");
    state_->draw();
}

Stage::~Stage() {
    if (state_->finished) return;
    state_->clear();
    log::detail(state_->title + ": failed");
}

void Stage::advance(std::uint64_t done, std::uint64_t total) {
    const std::lock_guard lock(state_->mutex);
    state_->done = done;
    state_->total = total;
    state_->draw();
}

void Stage::detail(std::string_view what) {
    const std::lock_guard lock(state_->mutex);
    state_->what = what;
    state_->draw();
}

void Stage::finish(std::string_view summary) {
    state_->finished = true;
    state_->clear();
    const double seconds = std::chrono::duration<double>(Clock::now() - state_->start).count();
    log::info(fmt::format("{}: {}{}", state_->title, summary.empty() ? "" : std::string(summary) + " in ",
                          human_seconds(seconds)));
}

std::string human_bytes(std::uint64_t bytes) {
    static constexpr const char* units[] = {"bytes", "kB", "MB", "GB", "TB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 999.95 && unit + 1 < std::size(units)) {
        value /= 1000;
        ++unit;
    }
    return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string human_count(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
        digits.insert(static_cast<std::size_t>(at), ",");
    return digits;
}

std::string human_seconds(double seconds) {
    if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
    const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
    return fmt::format("{} min {:02} s", whole / 60, whole % 60);
}

} // namespace containerize

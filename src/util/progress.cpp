#include "util/progress.h"

#include "util/log.h"
#include "util/timings.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <mutex>

#include <fmt/format.h>

namespace containerize {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto redraw_interval = std::chrono::milliseconds(100);
constexpr std::size_t bar_width = 20;

} // namespace

struct Stage::State {
    explicit State(std::string name) : title(std::move(name)), span(title) {}

    const std::string title;
    timings::Span span;
    const Clock::time_point start = Clock::now();
    std::mutex mutex; // workers report from their own threads
    Clock::time_point drawn;
    std::uint64_t done = 0, total = 0;
    double rate = 0;
    std::string what;
    bool finished = false;

    void draw() {
        const auto now = Clock::now();
        if (now - drawn < redraw_interval) return;
        drawn = now;
        const auto columns = log::progress_columns();
        // Some terminals wrap when the last column is filled.
        if (columns > 1) log::progress(fit(line(), columns - 1));
    }

    [[nodiscard]] std::string line() const {
        std::string text = title;
        if (total > 0) {
            const auto share = static_cast<double>(std::min(done, total)) / static_cast<double>(total);
            const auto filled = static_cast<std::size_t>(share * bar_width);
            text += fmt::format("  [{}{}] {:3.0f} %  {} of {}", std::string(filled, '#'),
                                std::string(bar_width - filled, '.'), share * 100, human_bytes(done),
                                human_bytes(total));
            if (rate > 0 && total > done)
                text += fmt::format("  {} left, {}/s", human_bytes(total - done),
                                    human_bytes(static_cast<std::uint64_t>(rate)));
        } else if (done > 0) {
            text += "  " + human_bytes(done);
        }
        if (!what.empty()) text += "  " + what;
        return text;
    }

    [[nodiscard]] std::string elapsed() const {
        return human_seconds(std::chrono::duration<double>(Clock::now() - start).count());
    }
};

Stage::Stage(std::string title) : state_(std::make_unique<State>(std::move(title))) {
    // A terminal shows this in its line of progress; the file gets it in any case.
    const auto line = state_->title + " ...";
    if (log::progress_columns() > 0)
        log::detail(line);
    else
        log::info(line);
    state_->draw();
}

Stage::~Stage() {
    if (state_->finished) return;
    log::progress({});
    log::info(fmt::format("{}: failed after {}", state_->title, state_->elapsed()));
}

void Stage::advance(std::uint64_t done, std::uint64_t total, double rate) {
    const std::lock_guard lock(state_->mutex);
    state_->done = done;
    state_->total = total;
    state_->rate = rate;
    state_->draw();
}

void Stage::detail(std::string_view what) {
    const std::lock_guard lock(state_->mutex);
    state_->what = what;
    state_->draw();
}

void Stage::finish(std::string_view summary) {
    const std::lock_guard lock(state_->mutex);
    state_->finished = true;
    state_->span.end();
    log::progress({});
    log::info(fmt::format("{}:{}{} in {}", state_->title, summary.empty() ? " done" : " ", summary,
                          state_->elapsed()));
}

std::string fit(std::string text, std::size_t width) {
    if (text.size() <= width) return text;
    while (width > 0 && (static_cast<unsigned char>(text[width]) & 0xC0U) == 0x80)
        --width;
    text.resize(width);
    return text;
}

std::string human_bytes(std::uint64_t bytes) {
    if (bytes < 1000) return fmt::format("{} B", bytes);
    constexpr std::array units = {"kB", "MB", "GB", "TB", "PB", "EB"};
    auto value = static_cast<double>(bytes) / 1000;
    std::size_t unit = 0;
    // 999.95 would be written as 1000.0.
    while (value >= 999.95 && unit + 1 < units.size()) {
        value /= 1000;
        ++unit;
    }
    return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string human_count(std::uint64_t number) {
    auto text = std::to_string(number);
    for (auto place = text.size(); place > 3; place -= 3)
        text.insert(place - 3, ",");
    return text;
}

std::string counted(std::uint64_t number, std::string_view unit, std::string_view plural) {
    if (number == 1) return fmt::format("1 {}", unit);
    return plural.empty() ? fmt::format("{} {}s", human_count(number), unit)
                          : fmt::format("{} {}", human_count(number), plural);
}

std::string human_seconds(double seconds) {
    if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
    const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
    if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
    return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

} // namespace containerize

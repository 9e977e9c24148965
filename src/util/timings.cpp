#include "util/timings.h"

#include "util/progress.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

namespace containerize::timings {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto no_row = static_cast<std::size_t>(-1);

/// Whose pieces share a row.
struct Worker {
    std::size_t within; ///< the row around it; no_row for none
    std::string title;
    std::thread::id thread;
    bool operator==(const Worker&) const = default;
};

struct OfThread {
    Worker worker;
    std::size_t row;
};

/// The recording of this process.
struct State {
    std::atomic<bool> started = false;
    Clock::time_point zero;
    std::mutex mutex;
    std::vector<Row> rows;
    std::vector<std::size_t> open; ///< rows of spans, innermost last
    std::vector<OfThread> threads;

    [[nodiscard]] double now() const { return std::chrono::duration<double>(Clock::now() - zero).count(); }

    std::size_t add_row(std::string title) {
        rows.push_back({.title = std::move(title), .depth = static_cast<unsigned>(open.size())});
        return rows.size() - 1;
    }

    void begin(std::size_t row) {
        const auto time = now();
        rows[row].busy.push_back({.from = time, .to = 0});
    }

    std::size_t row_of(Worker worker) {
        const auto found = std::ranges::find(threads, worker, &OfThread::worker);
        if (found != threads.end()) return found->row;
        const auto earlier = std::ranges::count_if(threads, [&](const OfThread& one) {
            return one.worker.within == worker.within && one.worker.title == worker.title;
        });
        const auto row = add_row(fmt::format("{}, thread {}", worker.title, earlier + 1));
        threads.push_back({.worker = std::move(worker), .row = row});
        return row;
    }
};

State& state() {
    static State the_state;
    return the_state;
}

void end_row(State& all, std::size_t row) {
    all.rows[row].busy.back().to = all.now();
}

double seconds_of(const std::vector<Interval>& busy) {
    double seconds = 0;
    for (const auto& [from, to] : busy)
        seconds += to - from;
    return seconds;
}

/// How long `busy` overlaps an interval.
double overlap(const std::vector<Interval>& busy, Interval with) {
    double seconds = 0;
    for (const auto& [from, to] : busy)
        seconds += std::max(0.0, std::min(to, with.to) - std::max(from, with.from));
    return seconds;
}

/// '#' for at least half of what a column stands for, '.' for less.
std::string bar(const std::vector<Interval>& busy, double total, std::size_t width) {
    std::string text(width, ' ');
    const auto step = total / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i) {
        const auto from = static_cast<double>(i) * step;
        const auto share = overlap(busy, {.from = from, .to = from + step});
        if (share > 0) text[i] = share >= step / 2 ? '#' : '.';
    }
    return text;
}

/// The time that no row covers.
std::vector<Interval> gaps(const Recording& recording) {
    std::vector<Interval> all;
    for (const auto& row : recording.rows)
        if (row.depth == 0) all.insert(all.end(), row.busy.begin(), row.busy.end());
    std::ranges::sort(all, {}, &Interval::from);
    std::vector<Interval> free;
    double covered = 0;
    for (const auto& [from, to] : all) {
        if (from > covered) free.push_back({.from = covered, .to = from});
        covered = std::max(covered, to);
    }
    if (recording.seconds > covered) free.push_back({.from = covered, .to = recording.seconds});
    return free;
}

struct Widths {
    std::size_t title, bar;
};

/// Long titles are cut before the bar becomes too short to read.
Widths widths_for(const std::vector<std::string>& titles, std::size_t columns) {
    constexpr std::size_t of_numbers = 20, least_bar = 20, least_title = 8;
    const auto widest = std::ranges::max(titles, {}, &std::string::size).size();
    const auto room = columns > of_numbers ? columns - of_numbers : 0;
    const auto title = std::min(widest, std::max(least_title, room > least_bar ? room - least_bar : 0));
    return {.title = title, .bar = room > title ? room - title : 0};
}

std::string hundredths(double seconds) {
    return fmt::format("{:.2f}", seconds);
}

} // namespace

void start() {
    auto& all = state();
    all.zero = Clock::now();
    all.started = true;
}

Span::Span(std::string_view title) : row_(no_row) {
    auto& all = state();
    if (!all.started) return;
    const std::lock_guard lock(all.mutex);
    row_ = all.add_row(std::string(title));
    all.open.push_back(row_);
    all.begin(row_);
}

void Span::end() {
    if (row_ == no_row) return;
    auto& all = state();
    const std::lock_guard lock(all.mutex);
    end_row(all, row_);
    std::erase(all.open, row_);
    row_ = no_row;
}

Piece::Piece(std::string_view title) : row_(no_row) {
    auto& all = state();
    if (!all.started) return;
    const std::lock_guard lock(all.mutex);
    row_ = all.row_of({.within = all.open.empty() ? no_row : all.open.back(),
                       .title = std::string(title),
                       .thread = std::this_thread::get_id()});
    all.begin(row_);
}

Piece::~Piece() {
    if (row_ == no_row) return;
    auto& all = state();
    const std::lock_guard lock(all.mutex);
    end_row(all, row_);
}

Recording recording() {
    auto& all = state();
    const std::lock_guard lock(all.mutex);
    Recording recording{.rows = all.rows, .seconds = all.now()};
    for (auto& row : recording.rows)
        if (row.busy.back().to == 0) row.busy.back().to = recording.seconds;
    return recording;
}

std::string chart(const Recording& recording, unsigned columns) {
    constexpr std::string_view outside = "not in a stage", axis_start = "0 s";
    auto titles = std::vector{std::string("stage")};
    for (const auto& row : recording.rows)
        titles.push_back(std::string(2 * std::size_t{row.depth}, ' ') + row.title);
    titles.emplace_back(outside);
    const auto [title, width] = widths_for(titles, columns);
    const auto line = [title = title](const std::string& text, const std::string& from,
                                      const std::string& seconds, const std::string& marks) {
        auto made = fmt::format("{:{}} {:>8} {:>8}  {}", fit(text, title), title, from, seconds, marks);
        made.erase(made.find_last_not_of(' ') + 1);
        return made;
    };

    const auto end = human_seconds(recording.seconds);
    const bool fits = width > axis_start.size() + end.size();
    auto text = line(titles.front(), "start", "seconds",
                     fits ? fmt::format("{}{:>{}}", axis_start, end, width - axis_start.size()) : "");
    for (std::size_t i = 0; i < recording.rows.size(); ++i) {
        const auto& busy = recording.rows[i].busy;
        text += "\n" + line(titles[i + 1], hundredths(busy.front().from), hundredths(seconds_of(busy)),
                            bar(busy, recording.seconds, width));
    }
    const auto rest = gaps(recording);
    auto marks = bar(rest, recording.seconds, width);
    std::ranges::replace(marks, '.', ' '); // there are moments between all rows
    return text + "\n" + line(titles.back(), "", hundredths(seconds_of(rest)), marks);
}

} // namespace containerize::timings

// Where the time of a command goes, for the chart of --timings.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::timings {

/// In seconds since start().
struct Interval {
    double from = 0, to = 0;
};

struct Row {
    std::string title;
    unsigned depth = 0;              ///< how many other rows it is within
    std::vector<Interval> busy = {}; ///< in order, without overlaps
};

/// Everything begins now, and is recorded from now on. Before that, and without it, nothing is.
void start();

/// A row of its own, until end(): within the rows that are open when it begins.
class Span {
public:
    explicit Span(std::string_view title);
    ~Span() { end(); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;
    void end();

private:
    std::size_t row_;
};

/// A piece of work of one of several threads. What a thread does under this title, within the same row, is
/// one row: "packing, thread 2".
class Piece {
public:
    explicit Piece(std::string_view title);
    ~Piece();
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;

private:
    std::size_t row_;
};

struct Recording {
    std::vector<Row> rows; ///< each followed by those within it
    double seconds = 0;    ///< since start()
};
/// What was recorded so far. Rows that are open end now.
Recording recording();

/// A line for each row, with its start, duration, and place on an axis of time from start() on, and at the
/// end one for the seconds that are in none of them. No line is wider than `columns`, unless there is no room
/// even for the numbers.
std::string chart(const Recording& recording, unsigned columns);

} // namespace containerize::timings

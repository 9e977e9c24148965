#include "util/progress.h"
#include "util/timings.h"

#include <sstream>
#include <thread>

#include <gtest/gtest.h>

namespace containerize {

namespace {

using timings::Interval;
using timings::Row;

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
        lines.push_back(std::move(line));
    return lines;
}

std::size_t widest(const std::string& text) {
    std::size_t columns = 0;
    for (const auto& line : lines_of(text))
        columns = std::max(columns, line.size());
    return columns;
}

const timings::Recording of_a_build = {
    .rows = {{.title = "Creating", .busy = {{0, 2}}},
             {.title = "Packing packages", .busy = {{2, 9}}},
             {.title = "packing, thread 1", .depth = 1, .busy = {{2, 4}, {5, 9}}},
             {.title = "packing, thread 2", .depth = 1, .busy = {{2, 2.1}}}},
    .seconds = 10};

} // namespace

TEST(Timings, Chart) {
    EXPECT_EQ(timings::chart(of_a_build, 59), "stage                  start  seconds  0 s           10.0 s\n"
                                              "Creating                0.00     2.00  ####\n"
                                              "Packing packages        2.00     7.00      ##############\n"
                                              "  packing, thread 1     2.00     6.00      ####  ########\n"
                                              "  packing, thread 2     2.00     0.10      .\n"
                                              "not in a stage                   1.00                    ##");
}

TEST(Timings, ChartIsAsWideAsTheTerminal) {
    for (const unsigned columns : {31U, 40U, 80U, 200U})
        EXPECT_EQ(widest(timings::chart(of_a_build, columns)), columns);
    const timings::Recording long_title = {.rows = {{.title = std::string(200, 'x'), .busy = {{0, 1}}}},
                                           .seconds = 1};
    EXPECT_EQ(widest(timings::chart(long_title, 80)), 80);
    // The numbers remain.
    EXPECT_NE(timings::chart(of_a_build, 0).find("7.00"), std::string::npos);
}

/// Time that two rows share is not counted twice.
TEST(Timings, ChartOfRowsThatOverlap) {
    const timings::Recording recording = {
        .rows = {{.title = "a", .busy = {{1, 3}}}, {.title = "b", .busy = {{2, 4}}}}, .seconds = 5};
    const auto last = lines_of(timings::chart(recording, 80)).back();
    EXPECT_TRUE(last.starts_with("not in a stage              2.00")) << last;
}

TEST(Timings, ChartOfNothing) {
    const auto lines = lines_of(timings::chart({}, 80));
    ASSERT_EQ(lines.size(), 2);
    EXPECT_EQ(lines[1], "not in a stage              0.00");
}

TEST(Timings, NothingIsRecordedUnlessStarted) {
    {
        const timings::Span span("span");
        const timings::Piece piece("piece");
    }
    EXPECT_TRUE(timings::recording().rows.empty());
}

TEST(Timings, RowsAreWithinOthers) {
    timings::start();
    {
        Stage outer("outer");
        const auto work = [] { const timings::Piece piece("work"); };
        std::thread(work).join();
        {
            timings::Span inner("inner");
            const timings::Piece piece("work");
        }
        work();
        work();
        outer.finish();
    }
    const timings::Span open("open");
    const auto recording = timings::recording();
    std::vector<std::pair<std::string, unsigned>> rows;
    for (const auto& row : recording.rows)
        rows.emplace_back(row.title, row.depth);
    const decltype(rows) expected = {{"outer", 0},          {"work, thread 1", 1}, {"inner", 1},
                                     {"work, thread 1", 2}, {"work, thread 2", 1}, {"open", 0}};
    EXPECT_EQ(rows, expected);
    EXPECT_EQ(recording.rows[4].busy.size(), 2);
    for (const auto& row : recording.rows)
        for (const auto& [from, to] : row.busy)
            EXPECT_TRUE(0 <= from && from <= to && to <= recording.seconds);
}

} // namespace containerize

#include "../good.h"
#include "core/cutoff.h"

namespace containerize {

namespace {

std::string cutoff(std::string_view text) {
    const auto parsed = parse_cutoff(text, 1'800'000'000); // 2027-01-15T08:00:00Z
    return parsed ? parsed->text() : "";
}

} // namespace

TEST(Cutoff, Times) {
    EXPECT_EQ(cutoff("2026-01-31T12:30:59Z"), "2026-01-31T12:30:59Z");
    EXPECT_EQ(cutoff("2026-01-31t12:30:59.123z"), "2026-01-31T12:30:59Z");
    EXPECT_EQ(cutoff("2026-01-31 12:30:59+02:30"), "2026-01-31T10:00:59Z");
    EXPECT_EQ(cutoff("2026-01-31T12:30:59-12:00"), "2026-02-01T00:30:59Z");
    EXPECT_EQ(cutoff("1970-01-01T00:00:00Z"), "1970-01-01T00:00:00Z");
    EXPECT_EQ(cutoff("9999-12-31"), "9999-12-31T23:59:59Z");
    EXPECT_EQ(cutoff("9999-12-31T23:59:59-23:59"), "9999-12-31T23:59:59Z");
}

TEST(Cutoff, ADateIncludesItsDay) {
    EXPECT_EQ(cutoff("2026-01-31"), "2026-02-01T00:00:00Z");
    EXPECT_EQ(cutoff(" 2024-02-28 "), "2024-02-29T00:00:00Z");
}

TEST(Cutoff, Durations) {
    for (const char* text :
         {"7 days", "7days", "7d", "1 week", "1w", "168 hours", "168h", "P7D", "p1w", "PT168H"})
        EXPECT_EQ(cutoff(text), "2027-01-08T08:00:00Z") << text;
    EXPECT_EQ(cutoff("0 days"), "2027-01-15T08:00:00Z");
    EXPECT_EQ(cutoff("1 day"), "2027-01-14T08:00:00Z");
}

TEST(Cutoff, EverythingElseIsRefused) {
    for (const char* text : {"",
                             "yesterday",
                             "2026",
                             "2026-02-30",
                             "2026-13-01",
                             "2026-1-1",
                             "2026-01-31T12:30",
                             "2026-01-31T25:00:00Z",
                             "2026-01-31T12:00:61Z",
                             "2026-01-31T12:00:00",
                             "2026-01-31T12:00:00+2",
                             "2026-01-31T12:00:00Zx",
                             "2026-01-31T12:00:00.Z",
                             "2026-01-31x",
                             "1969-12-31T23:59:59Z",
                             "1969-12-30",
                             "0000-01-01",
                             "999999 weeks",
                             "2026-01-31T12:00:00 Z",
                             "2026-01-31T12:00:00UTC",
                             "31.01.2026",
                             "1770000000",
                             "days",
                             "-7 days",
                             "7",
                             "7 months",
                             "1000000 weeks",
                             "P7H",
                             "PT7D"})
        EXPECT_EQ(cutoff(text), "") << text;
    EXPECT_EQ(to_string(test::error_of(parse_cutoff("soon", 0))),
              "'soon' is neither a time nor a duration\nGive a date (2026-01-31), a time "
              "(2026-01-31T12:00:00Z) or how long "
              "ago it is (7 days).");
    EXPECT_EQ(test::error_of(parse_cutoff("2 weeks", 1000)).why, "it is before 1970");
}

} // namespace containerize

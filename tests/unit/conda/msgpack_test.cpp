#include "../good.h"
#include "conda/msgpack.h"
#include "shards.h"

#include <cstdint>
#include <limits>

namespace containerize::conda {

namespace {

using nlohmann::json;

std::string text_of(std::string_view packed) {
    const auto text = json_of_msgpack(packed, 1000);
    return text ? *text : text.error().why;
}

std::string around(std::size_t levels, char opens) {
    return std::string(levels, opens) + "\x01";
}

} // namespace

TEST(MessagePack, EveryTypeBecomesJson) {
    json value = {
        {"numbers",
         {0, 127, 128, 255, 256, 65535, 65536, 4294967295U, 4294967296U, -1, -32, -33, -128, -129, -32768,
          -32769, -2147483648LL, -2147483649LL}},
        {"largest", std::numeric_limits<std::uint64_t>::max()},
        {"smallest", std::numeric_limits<std::int64_t>::min()},
        {"words", {true, false, nullptr}},
        {"reals", {0.5, -1e300}},
        {"texts", {"", "a\"b\\c\n", "ä", std::string(31, 'x'), std::string(32, 'x'), std::string(300, 'x')}},
        {"nothing", {json::array(), json::object()}},
        {"a \"key\"", std::vector<int>(20, 7)}};
    EXPECT_EQ(json::parse(test::good(json_of_msgpack(test::msgpack(value), 10'000))), value);
    json many = json::object();
    for (int i = 0; i < 70'000; ++i)
        many[std::to_string(i)] = std::string(i == 0 ? 70'000 : 1, 'x');
    EXPECT_EQ(json::parse(test::good(json_of_msgpack(test::msgpack(many), 10'000'000))), many);
    EXPECT_EQ(text_of(std::string_view("\x81\xA1k\xC4\x02\x0F\xA0", 7)), R"({"k":"0fa0"})");
    EXPECT_EQ(text_of(std::string_view("\x91\xCA\x3F\x00\x00\x00", 6)), "[0.5]");
    EXPECT_EQ(text_of(std::string_view("\x91\xCA\x7F\x80\x00\x00", 6)), "[null]"); // infinity
}

TEST(MessagePack, WhatIsDamagedIsRefused) {
    EXPECT_EQ(text_of(""), "it is truncated (at byte 0)");
    EXPECT_EQ(text_of("\x92\x01"), "it is truncated (at byte 2)");
    EXPECT_EQ(text_of("\xDB\xFF\xFF\xFF\xFFx"), "it is truncated (at byte 5)");
    EXPECT_EQ(text_of("\xDD\xFF\xFF\xFF\xFF"), "it is truncated (at byte 5)");
    EXPECT_EQ(text_of("\xC1"), "it contains a value of an unknown type (at byte 1)");
    EXPECT_EQ(text_of("\xD4\x01\x01"), "it contains a value of an unknown type (at byte 1)");
    EXPECT_EQ(text_of("\x01\x01"), "more data follows it (at byte 1)");
    EXPECT_EQ(text_of("\x81\x01\x01"), "a key is not a text (at byte 1)");
    EXPECT_EQ(text_of("\xA1\xFF"), "a text is not UTF-8 (at byte 2)");
}

TEST(MessagePack, WhatIsTooMuchIsRefused) {
    EXPECT_EQ(text_of(around(16, '\x91')), "[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]");
    EXPECT_EQ(text_of(around(17, '\x91')), "it is nested too deeply (at byte 17)");
    EXPECT_EQ(text_of(around(10'000'000, '\x91')), "it is nested too deeply (at byte 17)");
    EXPECT_EQ(text_of(test::msgpack(std::vector<int>(2000, 100))).substr(0, 32),
              "it needs more than 1000 bytes (a");
    EXPECT_EQ(text_of(test::msgpack(json{std::string(1001, 'x'), 1})).substr(0, 29),
              "it needs more than 1000 bytes");
}

} // namespace containerize::conda

#include "util/json.h"

#include <string>

#include <gtest/gtest.h>

namespace containerize {
namespace {

std::string nested(std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
}

TEST(Json, DepthIsLimited) {
    EXPECT_EQ(parse_json(nested(200)).dump(), nested(200));
    EXPECT_THROW(parse_json(nested(201)), nlohmann::json::exception);
    EXPECT_THROW(parse_json(nested(3'000'000)), nlohmann::json::exception);
    EXPECT_TRUE(parse_json_quietly(nested(3'000'000)).is_discarded());
    std::string objects;
    for (int i = 0; i < 300; ++i)
        objects += R"({"a":)";
    EXPECT_THROW(parse_json(objects), nlohmann::json::exception);
}

TEST(Json, BracketsInTextAreNone) {
    const std::string text =
        R"(["\\\")" + std::string(500, '[') + R"(", ")" + std::string(500, '{') + R"("])";
    EXPECT_EQ(parse_json(text).size(), 2U);
    std::string flat = "[";
    for (int i = 0; i < 1000; ++i)
        flat += "[],{},";
    EXPECT_EQ(parse_json(flat + "[]]").size(), 2001U);
}

TEST(Json, QuietAboutWhatIsNone) {
    EXPECT_TRUE(parse_json_quietly("{").is_discarded());
    EXPECT_THROW(parse_json("{"), nlohmann::json::exception);
    EXPECT_EQ(parse_json_quietly("{}"), nlohmann::json::object());
}

TEST(Json, NumbersMustBeWholeAndFit) {
    EXPECT_EQ(to_integer<int>(parse_json("-7")), -7);
    EXPECT_EQ(to_integer<std::uint64_t>(parse_json("18446744073709551615")), ~std::uint64_t{0});
    for (const char* text :
         {"2e41", "33333333331313333333", "4294967296", "-1", "1.5", "true", "\"1\"", "null"})
        EXPECT_THROW(to_integer<unsigned>(parse_json(text)), nlohmann::json::exception) << text;
}

} // namespace
} // namespace containerize

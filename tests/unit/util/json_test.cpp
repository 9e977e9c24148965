#include "util/json.h"

#include <string>

#include <gtest/gtest.h>

namespace containerize {
namespace {

std::string nested(std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
}

std::string reason_for(const std::string& text) {
    try {
        return parse_json(text).at("key").get<std::string>();
    } catch (const nlohmann::json::exception& problem) {
        return reason(problem, text);
    }
}

TEST(Json, ReasonsHaveTheLineAndNothingOfTheLibrary) {
    EXPECT_EQ(reason_for("{\n\"a\": 1,\n"), "the JSON text ends too early, in line 2");
    EXPECT_EQ(reason_for(""), "the JSON text ends too early, in line 1");
    EXPECT_EQ(reason_for("{\n\"a\": secret,\n\"b\": 1}"), "line 2 is not valid JSON");
    EXPECT_EQ(reason_for("{} x"), "line 1 is not valid JSON");
    EXPECT_EQ(reason_for("[1]"), "a value that must be an object is not one");
    EXPECT_EQ(reason_for("{}"), "key 'key' not found");
    EXPECT_EQ(reason_for(R"({"key": null})"), "type must be string, but is null");
    EXPECT_EQ(reason_for(nested(300)), "it is nested too deeply");
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

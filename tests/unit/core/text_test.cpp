#include "core/text.h"
#include "core/variables.h"

#include <gtest/gtest.h>

namespace containerize {
namespace {

TEST(Text, SplitAndJoined) {
    EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string_view>{"a", "", "b", ""}));
    EXPECT_EQ(split("", ','), std::vector<std::string_view>{""});
    EXPECT_EQ(joined(split("a,,b,", ','), "; "), "a; ; b; ");
    EXPECT_EQ(joined(std::vector<std::string>(), ", "), "");
}

TEST(Text, Words) {
    EXPECT_EQ(words_in(" a  b\tc\n", " \t"), (std::vector<std::string>{"a", "b", "c\n"}));
    EXPECT_TRUE(words_in(" \t", " \t").empty());
    std::string_view text = "a,,b";
    EXPECT_EQ(take_until(text, ','), "a");
    EXPECT_EQ(take_until(text, ','), "");
    EXPECT_EQ(take_until(text, ','), std::nullopt);
    EXPECT_EQ(text, "b");
    EXPECT_EQ(escaped("a$b\\c", "$\\"), "a\\$b\\\\c");
    EXPECT_TRUE(is_hex("0af", 3));
    for (const char* none : {"0a", "0aff", "0aF", "0ag"})
        EXPECT_FALSE(is_hex(none, 3)) << none;
}

TEST(Text, PointersForExecve) {
    std::vector<std::string> words = {"a", "b"};
    char more[] = "c";
    char* const rest[] = {more, nullptr};
    const auto pointers = pointers_to(words, rest);
    ASSERT_EQ(pointers.size(), 4U);
    EXPECT_EQ(pointers[0], words[0].data());
    EXPECT_EQ(pointers[2], more);
    EXPECT_EQ(pointers[3], nullptr);
    EXPECT_EQ(pointers_to(words).size(), 3U);
}

TEST(Text, Numbers) {
    EXPECT_EQ(to_number<unsigned>("12"), 12U);
    EXPECT_EQ(to_number<unsigned>("1f", 16), 31U);
    EXPECT_EQ(to_number<double>("1.5"), 1.5);
    for (const char* none : {"", " 1", "1 ", "-1", "4294967296", "0x1"})
        EXPECT_FALSE(to_number<unsigned>(none)) << none;
}

TEST(Variables, InTexts) {
    const Environment environment = {{"A", "1"}, {"A_B", "2"}, {"EMPTY", ""}};
    EXPECT_EQ(expand_variables("$A/${A_B}$A_B-${EMPTY}.", environment), "1/22-.");
    for (const std::string same : {"", "$", "$$", "${A", "${}", "$1", "$NONE ${NONE}", "{A}"})
        EXPECT_EQ(expand_variables(same, environment), same);
    EXPECT_EQ(named_variable(environment, "A"), "1");
    EXPECT_EQ(named_variable(environment, "NONE"), "");
}

} // namespace
} // namespace containerize

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

#include "environments/pinned_uv.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace containerize::environments {

namespace {

spec::Requirements lines(const std::vector<std::string>& texts) {
    spec::Requirements requirements;
    for (const auto& text : texts)
        requirements.lines.emplace_back().text = text;
    return requirements;
}

std::string obstacle(const std::vector<pip::Setting>& settings, const std::vector<std::string>& texts,
                     const Environment& environment = {}) {
    return obstacle_to_pinned_uv(settings, lines(texts), environment);
}

TEST(PinnedUv, IsOnlyForPyPi) {
    EXPECT_EQ(obstacle({}, {"six", "requests>=2"}), "");
    EXPECT_EQ(obstacle({{.section = "global", .name = "extra-index-url", .value = "https://h/simple"}},
                       {"--extra-index-url https://h/simple", "--find-links /wheels", "six"}),
              "");
    const std::string reason = "another index than PyPI is asked";
    EXPECT_EQ(obstacle({{.section = ":env:", .name = "index-url", .value = "https://h/simple"}}, {"six"}),
              reason);
    EXPECT_EQ(obstacle({{.section = "install", .name = "no-index", .value = "1"}}, {"six"}), reason);
    for (const auto* line : {"-i https://h/simple", "--index-url=https://h/simple", "--no-index"})
        EXPECT_EQ(obstacle({}, {line, "six"}), reason) << line;
    EXPECT_EQ(obstacle({}, {"six @ https://h/--no-index/six.whl"}), "");
}

TEST(PinnedUv, IsNotForWhoConfiguresUv) {
    EXPECT_EQ(obstacle({}, {"six"}, {{"PIP_TIMEOUT", "9"}, {"UVX", "1"}}), "");
    EXPECT_EQ(obstacle({}, {"six"}, {{"UV_INDEX", "https://h/simple"}}),
              "UV_INDEX is set, but uv is not on PATH");
}

} // namespace

} // namespace containerize::environments

#include "util/yaml_size.h"

#include <gtest/gtest.h>

namespace containerize {

TEST(YamlSize, IsNoLessThanTheNodes) {
    const std::pair<const char*, std::size_t> cases[] = {
        {"", 0},
        {"a: b", 3},
        {"a: b\nc: d\n", 5},
        {"- a\n- b", 3},
        {"- - - a", 4},
        {"? ? ? a", 7},
        {": : : : : :", 13},
        {"?\n?\n- ?\n?\n", 12},
        {"{{{{{{{{}}}}}}}}", 16},
        {"{a, b}", 5},
        {"[,,]", 3},
        {"[a: b, c: d]", 7},
        {"[a: [a: [a: b]]]", 10},
        {"-\n-\n-\n", 4},
        {"{?\ta, ? b}", 5},
        {"[{}, []]", 3},
        {"- ? a\n  : - b\n", 5},
    };
    for (const auto& [text, nodes] : cases)
        EXPECT_GE(most_yaml_nodes(text), nodes) << text;
}

TEST(YamlSize, IsNearTheNodesOfRealFiles) {
    constexpr const char* package = "- conda: https://h/linux-64/a-1.0-h0.conda\n"
                                    "  sha256: 00\n"
                                    "  depends:\n"
                                    "  - libgcc >=13,<14.0a0\n";
    constexpr std::size_t nodes = 9;
    EXPECT_LE(most_yaml_nodes(package), 2 * nodes);
}

} // namespace containerize

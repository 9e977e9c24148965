#include "launch/environment.h"

#include <gtest/gtest.h>

namespace containerize::launch {
namespace {

using Kind = EnvironmentChange::Kind;

TEST(PathElements, GoInFrontOrBehindAndAreNotRepeated) {
    struct Case {
        const char *path, *elements, *in_front, *behind;
    };
    const Case cases[] = {
        {"/usr/bin:/bin", "/e/bin", "/e/bin:/usr/bin:/bin", "/usr/bin:/bin:/e/bin"},
        {"/usr/bin:/e/bin:/bin", "/e/bin", "/e/bin:/usr/bin:/bin", "/usr/bin:/bin:/e/bin"},
        {"", "/e/bin", "/e/bin", "/e/bin"},
        {"/a", "/x:/y", "/x:/y:/a", "/a:/x:/y"},
        {"/a::/b", "/x", "/x:/a::/b", "/a::/b:/x"},
        {"/a:", "/x", "/x:/a:", "/a::/x"},
    };
    for (const auto& one : cases) {
        EXPECT_EQ(with_path_elements(one.path, one.elements, true), one.in_front) << one.path;
        EXPECT_EQ(with_path_elements(one.path, one.elements, false), one.behind) << one.path;
    }
}

TEST(Variables, ChangesApplyInOrder) {
    const char* const given[] = {"PATH=/bin", "KEEP=1", "GONE=x", "PATHS=y", "odd entry", nullptr};
    Variables variables(given);
    variables.apply({{Kind::prepend, "PATH", "/e/bin"},
                     {Kind::unset, "GONE", {}},
                     {Kind::unset, "NEVER_THERE", {}},
                     {Kind::set, "NEW", "with = sign"},
                     {Kind::append, "LIST", "/first"},
                     {Kind::append, "LIST", "/second"}});
    EXPECT_STREQ(variables.get("PATH"), "/e/bin:/bin");
    EXPECT_STREQ(variables.get("KEEP"), "1");
    EXPECT_EQ(variables.get("GONE"), nullptr);
    EXPECT_STREQ(variables.get("NEW"), "with = sign");
    EXPECT_STREQ(variables.get("LIST"), "/first:/second");
    EXPECT_STREQ(variables.get("PATHS"), "y");
    const auto pointers = variables.pointers();
    EXPECT_EQ(pointers.back(), nullptr);
    EXPECT_EQ(pointers.size(), 7U);
}

TEST(Variables, NoEnvironmentAtAll) {
    Variables variables(nullptr);
    EXPECT_EQ(variables.get("PATH"), nullptr);
    EXPECT_EQ(variables.pointers().size(), 1U);
}

} // namespace
} // namespace containerize::launch

#include "../temporary.h"
#include "environments/scripts.h"

#include <gtest/gtest.h>

namespace containerize::environments {
namespace {

using test::mode_of;
using test::TemporaryDirectory;

constexpr const char* script_of_pip =
    "#!/bin/sh\n'''exec' \"/a $b/bin/python\" \"$0\" \"$@\"\n' '''\nimport x\n";

TEST(Scripts, PathsThatShExpandsAreAvoided) {
    const TemporaryDirectory directory;
    const auto script = directory.write("bin/tool", script_of_pip);
    const auto other = directory.write("bin/other", "#!/a $b/bin/python\nimport x\n");
    ASSERT_TRUE(repair_scripts(directory / "bin", "/a $b"));
    EXPECT_EQ(*read_file(script),
              "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/python \"$0\" "
              "\"$@\"\n' '''\nimport x\n");
    EXPECT_EQ(mode_of(script) & 0111U, 0111U);
    EXPECT_EQ(*read_file(other), "#!/a $b/bin/python\nimport x\n");
}

TEST(Scripts, OrdinaryPathsAreLeft) {
    const TemporaryDirectory directory;
    const auto script = directory.write("bin/tool", script_of_pip);
    ASSERT_TRUE(repair_scripts(directory / "bin", "/a b"));
    EXPECT_EQ(*read_file(script), script_of_pip);
}

} // namespace
} // namespace containerize::environments

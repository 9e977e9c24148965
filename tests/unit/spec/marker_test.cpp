#include "../good.h"
#include "spec/marker.h"

#include <string>

#include <gtest/gtest.h>

namespace containerize::spec {
namespace {

const MarkerFacts facts{.machine = "x86_64", .extras = {"net", "my-extra"}, .groups = {"dev"}};

std::string left_of(std::string_view text) {
    const auto marker = test::good(parse_marker(text, facts));
    if (marker.is_never()) return "never";
    return marker.is_always() ? "always" : marker.text();
}

TEST(Marker, WhatIsKnownIsDecided) {
    EXPECT_EQ(left_of(""), "always");
    EXPECT_EQ(left_of("sys_platform == 'linux'"), "always");
    EXPECT_EQ(left_of("'linux' == sys_platform"), "always");
    EXPECT_EQ(left_of("sys_platform == \"win32\" or os.name == 'nt'"), "never");
    EXPECT_EQ(left_of("platform_machine not in 'x86_64 AMD64'"), "never");
    EXPECT_EQ(left_of("'lin' in sys_platform and platform_system != 'Darwin'"), "always");
    EXPECT_EQ(left_of("python_version < '3.11' and sys_platform == 'win32'"), "never");
    EXPECT_EQ(left_of("(python_version < '3.11' or sys_platform == 'win32')"), "python_version < '3.11'");
}

TEST(Marker, ExtrasAndGroupsAreDecided) {
    EXPECT_EQ(left_of("extra == 'net'"), "always");
    EXPECT_EQ(left_of("extra == 'My_Extra'"), "always");
    EXPECT_EQ(left_of("extra != 'net'"), "never");
    EXPECT_EQ(left_of("'net' in extras or 'lint' in dependency_groups"), "always");
    EXPECT_EQ(left_of("'net' not in extras"), "never");
    EXPECT_EQ(left_of("'dev' in dependency_groups and python_version >= '3.9'"), "python_version >= '3.9'");
    EXPECT_EQ(left_of("'lint' in dependency_groups"), "never");
}

TEST(Marker, WhatDependsOnPythonStays) {
    EXPECT_EQ(left_of("python_version<'3.11' and implementation_name == \"cpython\""),
              "implementation_name == 'cpython' and python_version < '3.11'");
    EXPECT_EQ(left_of("platform_python_implementation != 'PyPy' or (python_version in '3.8 3.9')"),
              "platform_python_implementation != 'PyPy' or python_version in '3.8 3.9'");
    EXPECT_EQ(left_of("python_implementation == 'PyPy'"), "platform_python_implementation == 'PyPy'");
    EXPECT_EQ(left_of("python_version not in '3.8'"), "python_version not in '3.8'");
    EXPECT_EQ(left_of("platform_release >= '5'"), "platform_release >= '5'");
}

TEST(Marker, IsSimplified) {
    EXPECT_EQ(left_of("python_version < '3' or python_version < '3' and os_name == 'posix'"),
              "python_version < '3'");
    EXPECT_EQ(left_of("python_version < '3' and python_version >= '3'"), "never");
    EXPECT_EQ(left_of("python_version < '3' or python_version >= '3'"), "always");
    EXPECT_EQ(left_of("python_version < '3' and implementation_name == 'a' or "
                      "python_version >= '3' and implementation_name == 'a'"),
              "implementation_name == 'a'");
}

TEST(Marker, HostileOnesEndSoon) {
    std::string many = "python_version < '0'";
    for (int i = 1; i < 2500; ++i)
        many += " and platform_release < '" + std::to_string(i) + "'";
    EXPECT_EQ(parse_marker(many, facts).error().why, "it is too long");
    many.resize(many.rfind(" and", 64'000));
    const auto parsed = parse_marker(many, facts);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().why, "it is too complex");
}

TEST(Marker, MistakesAreInputErrors) {
    const auto wrong = [](const std::string& text) {
        const auto error = test::error_of(parse_marker(text, facts));
        EXPECT_EQ(error.fault, Fault::input);
        return error.why;
    };
    EXPECT_EQ(wrong("python_version"), "a comparison is missing");
    EXPECT_EQ(wrong("python_version not '3'"), "a comparison is missing");
    EXPECT_EQ(wrong("python_version <"), "a value is missing");
    EXPECT_EQ(wrong("python_version < '3"), "a quote is not closed");
    EXPECT_EQ(wrong("python_version < \"3'\""), "a value contains a quote");
    EXPECT_EQ(wrong("(python_version < '3'"), "a bracket is not closed");
    EXPECT_EQ(wrong("python_version < '3' or"), "a value is missing");
    EXPECT_EQ(wrong("python_version < '3' --hash=x"), "something follows it");
    EXPECT_EQ(wrong("moon_phase == 'full'"), "a variable is unknown");
    EXPECT_EQ(wrong("'3' < '4'"), "a variable must be compared with a value in quotes");
    EXPECT_EQ(wrong("python_version == os_name"), "a variable must be compared with a value in quotes");
    EXPECT_EQ(wrong("extra > 'net'"), "`extra` cannot be compared like this");
    EXPECT_EQ(wrong(std::string(100, '(') + "os_name == 'a'"), "it has too many brackets");
    std::string large;
    for (int i = 0; i < 20; ++i)
        large += (large.empty() ? "" : " and ") + std::string("(platform_release == '") + std::to_string(i) +
                 "' or platform_version == '" + std::to_string(i) + "')";
    EXPECT_EQ(wrong(large), "it is too complex");
}

} // namespace
} // namespace containerize::spec

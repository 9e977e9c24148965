#include "../good.h"
#include "pip/pylock.h"
#include "pip/sources.h"

#include <gtest/gtest.h>

namespace containerize::pip {

namespace {

using Kind = ResolvedPackage::Kind;

const std::string checksum(64, 'a');

std::string entry_of(const ResolvedPackage& package) {
    const auto text = test::good(
        pylock_text({.packages = {locked_package(package)}}, {.python = "3.11.2", .machine = "x86_64"}));
    const auto begin = text.find("[[packages]]\n");
    return begin == text.npos ? text : text.substr(begin);
}

TEST(Pylock, SaysWhatItIsFor) {
    EXPECT_EQ(test::good(pylock_text({}, {.python = "3.11.2", .machine = "x86_64"})),
              R"(lock-version = "1.0"
environments = ["sys_platform == 'linux' and platform_machine == 'x86_64'"]
requires-python = "==3.11.*"
created-by = "containerize"
)");
}

TEST(Pylock, NamesWheels) {
    EXPECT_EQ(entry_of({.name = "My.Pkg",
                        .version = "1.0",
                        .url = "https://h/my_pkg-1.0%2Bcpu-py3-none-any.whl",
                        .sha256 = checksum,
                        .size = 7}),
              R"([[packages]]
name = "my-pkg"
version = "1.0"
[[packages.wheels]]
name = "my_pkg-1.0+cpu-py3-none-any.whl"
url = "https://h/my_pkg-1.0%2Bcpu-py3-none-any.whl"
size = 7
hashes = { sha256 = ")" +
                  checksum + "\" }\n");
    const auto local = entry_of(
        {.name = "p", .version = "1.0", .url = "file:///w%20x/p-1.0-py3-none-any.whl", .sha256 = checksum});
    EXPECT_NE(local.find("path = \"/w x/p-1.0-py3-none-any.whl\"\n"), local.npos);
    const auto direct = entry_of({.name = "p",
                                  .version = "1.0",
                                  .url = "https://h/p-1.0-py3-none-any.whl",
                                  .sha256 = checksum,
                                  .direct_url = "{}"});
    EXPECT_NE(direct.find("[packages.archive]\nurl = "), direct.npos);
}

TEST(Pylock, NamesSources) {
    const auto from = [](const Origin& origin, const std::string& direct_url) {
        const auto text = entry_of({.name = "p",
                                    .version = "1.0",
                                    .direct_url = direct_url,
                                    .kind = Kind::needs_build,
                                    .source = origin});
        return text.substr(text.find("[packages."));
    };
    EXPECT_EQ(from({.url = "https://h/p-1.0.tar.gz", .sha256 = checksum}, ""),
              "[packages.sdist]\nname = \"p-1.0.tar.gz\"\nurl = \"https://h/p-1.0.tar.gz\"\nhashes = { "
              "sha256 = \"" +
                  checksum + "\" }\n");
    EXPECT_EQ(
        from({.url = "https://h/p.zip", .subdirectory = "below", .sha256 = checksum}, "{}"),
        "[packages.archive]\nurl = \"https://h/p.zip\"\nsubdirectory = \"below\"\nhashes = { sha256 = \"" +
            checksum + "\" }\n");
    EXPECT_EQ(from({.url = "https://me:secret@h/p.git", .vcs = "git", .commit = "abc"}, "{}"),
              "[packages.vcs]\ntype = \"git\"\nurl = \"https://h/p.git\"\ncommit-id = \"abc\"\n");
    EXPECT_EQ(from({.url = "file:///home/me/p", .directory = true}, "{}"),
              "[packages.directory]\npath = \"/home/me/p\"\n");
}

std::string url_for(const std::string& address) {
    const auto text = entry_of({.name = "p", .version = "1.0", .url = address, .sha256 = checksum});
    const auto begin = text.find("url = \"");
    return begin == text.npos ? text : text.substr(begin + 7, text.find('"', begin + 7) - begin - 7);
}

TEST(Pylock, HasTheAddressesAsTheyAreWithoutLogins) {
    const std::string by_letter = "https://h/packages/source/t/toolz/toolz-0.12.0-py3-none-any.whl";
    EXPECT_EQ(url_for(by_letter), by_letter);
    EXPECT_EQ(url_for("https://me:secret@h/p-1.0-py3-none-any.whl#sha256=x"),
              "https://h/p-1.0-py3-none-any.whl");
    const auto of = [](const std::string& url) {
        return pylock_text(
            {.packages = {locked_package({.name = "p", .version = "1.0", .url = url, .sha256 = checksum})}},
            {.python = "3.11.2", .machine = "x86_64"});
    };
    EXPECT_EQ(test::error_of(of("https://h/p-1.0-py3-none-any.whl?sig=abcdef")).fault, Fault::input);
    EXPECT_EQ(test::error_of(of("file:///w%FF/p-1.0-py3-none-any.whl")).why, "its decoded path is not UTF-8");
    const auto unusual = test::good(of("file:///w%7F%0A/p-1.0-py3-none-any.whl"));
    EXPECT_NE(unusual.find(R"(path = "/w\u007F\n/p-1.0-py3-none-any.whl")"), unusual.npos) << unusual;
}

} // namespace

} // namespace containerize::pip

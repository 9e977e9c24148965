#include "../good.h"
#include "pip/pylock.h"
#include "pip/sources.h"
#include "util/redact.h"

#include <gtest/gtest.h>

namespace containerize::pip {

namespace {

using Kind = ResolvedPackage::Kind;
using Source = spec::PipSource::Kind;

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
              "[packages.vcs]\ntype = \"git\"\nurl = \"https://h/p.git\"\ncommit-id = \"abc\"\n"
              "[packages.tool.containerize]\nversion = \"1.0\"\n");
    EXPECT_EQ(from({.url = "file:///home/me/p", .directory = true}, "{}"),
              "[packages.directory]\npath = \"/home/me/p\"\n"
              "[packages.tool.containerize]\nversion = \"1.0\"\n");
}

TEST(Pylock, HasNoVersionOfSourceTrees) {
    const auto has_version = [](const Origin& origin) {
        const auto text = entry_of(
            {.name = "p", .version = "1.0", .direct_url = "{}", .kind = Kind::needs_build, .source = origin});
        return text.find("version = ") < text.find("[packages.");
    };
    EXPECT_TRUE(has_version({.url = "https://h/p-1.0.tar.gz", .sha256 = checksum}));
    EXPECT_FALSE(has_version({.url = "https://h/p.git", .vcs = "git", .commit = "abc"}));
    EXPECT_FALSE(has_version({.url = "file:///home/me/p", .directory = true}));
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
    const auto direct = test::error_of(
        pylock_text({.packages = {locked_package({.name = "p",
                                                  .version = "1.0",
                                                  .url = "https://h/p-1.0-py3-none-any.whl?sig=abcdef",
                                                  .sha256 = checksum,
                                                  .direct_url = "{}"})}},
                    {.python = "3.11.2", .machine = "x86_64"}));
    EXPECT_EQ(direct.fault, Fault::input);
    EXPECT_EQ(to_string(direct).find("abcdef"), std::string::npos);
    EXPECT_EQ(test::error_of(of("file:///w%FF/p-1.0-py3-none-any.whl")).why, "its decoded path is not UTF-8");
    const auto unusual = test::good(of("file:///w%7F%0A/p-1.0-py3-none-any.whl"));
    EXPECT_NE(unusual.find(R"(path = "/w\u007F\n/p-1.0-py3-none-any.whl")"), unusual.npos) << unusual;
}

TEST(Pylock, NamesFilesOfIndexesWithSecretAddressesWithoutThem) {
    remember_variable("FEED_OF_PYLOCK", "feed-of-pylock-4711");
    for (const std::string url : {"https://h/p-1.0-py3-none-any.whl?sig=abcdef",
                                  "https://h/feed-of-pylock-4711/p-1.0-py3-none-any.whl"})
        EXPECT_EQ(entry_of({.name = "p", .version = "1.0", .url = url, .sha256 = checksum}),
                  R"([[packages]]
name = "p"
version = "1.0"
[[packages.wheels]]
name = "p-1.0-py3-none-any.whl"
hashes = { sha256 = ")" +
                      checksum + "\" }\n");
    const auto source = source_of(Origin{.url = "https://h/feed-of-pylock-4711/p.zip", .sha256 = checksum});
    EXPECT_EQ(source.url, "https://h/${FEED_OF_PYLOCK}/p.zip");
    EXPECT_FALSE(check_lockable({.name = "p", .source = source}));
}

TEST(Pylock, IsReadBack) {
    Pylock lock{
        .options = {"--index-url https://i/simple"}, .of_venv = {"pip==23"}, .left_out = {"x 1: why"}};
    for (const auto& source : std::vector<spec::PipSource>{
             {.kind = Source::index,
              .file = "p+q-1.whl",
              .url = "https://h/p%2Bq-1.whl",
              .sha256 = checksum,
              .size = 5},
             {.kind = Source::index, .file = "p-1.whl", .sha256 = checksum},
             {.kind = Source::index,
             .file = "p-1.tar.gz",
             .url = "file:///w%20x/p-1.tar.gz",
             .sha256 = checksum},
             {.kind = Source::archive, .url = "https://h/p.zip", .sha256 = checksum, .subdirectory = "d"},
             {.kind = Source::repository,
             .url = "https://h/p",
             .vcs = "git",
             .commit = "abc",
             .subdirectory = "d"},
             {.kind = Source::directory, .url = "file:///p", .editable = true}})
        lock.packages.push_back(
            {.name = "p" + std::to_string(lock.packages.size()), .version = "1", .source = source});
    const auto text = test::good(pylock_text(lock, {.python = "3.11.2", .machine = "x86_64"}));
    const auto read = test::good(parse_pylock(text, "pylock.toml"));
    ASSERT_EQ(read.packages.size(), lock.packages.size()) << text;
    for (std::size_t i = 0; i < lock.packages.size(); ++i) {
        EXPECT_EQ(read.packages[i].name, lock.packages[i].name);
        EXPECT_EQ(read.packages[i].version, "1");
        EXPECT_EQ(read.packages[i].source, lock.packages[i].source) << text;
    }
    EXPECT_EQ(read.options, lock.options);
    EXPECT_EQ(read.of_venv, lock.of_venv);
    EXPECT_EQ(read.left_out, lock.left_out);
    EXPECT_EQ(test::error_of(parse_pylock("[[packages]]\nname = \"p\"\n", "f")).where, "f:1");
    EXPECT_EQ(test::error_of(parse_pylock("packages = 1", "f")).fault, Fault::input);
    for (const auto& [what, evil] :
         {std::pair("https://h/p.zip", "https://h/p.zip\\n--pre"), std::pair("abc", "a c"),
          std::pair("\"p0\"", "\"p0 x\""), std::pair("--index-url ", "--pre\\n--index-url ")}) {
        auto changed = text;
        changed.replace(changed.find(what), std::string_view(what).size(), evil);
        EXPECT_EQ(test::error_of(parse_pylock(changed, "f")).fault, Fault::input) << evil;
    }
}

TEST(Pylock, GivesRequirements) {
    const auto requirement = [](const spec::PipSource& source) {
        return requirement_of({.name = "p", .version = "1.0", .source = source});
    };
    EXPECT_EQ(requirement({}), "p==1.0");
    EXPECT_EQ(requirement({.kind = Source::index, .url = "https://h/p.whl", .sha256 = "aa"}),
              "p==1.0 --hash=sha256:aa");
    EXPECT_EQ(requirement({.kind = Source::archive, .url = "https://h/p.whl", .sha256 = "aa"}),
              "p @ https://h/p.whl#sha256=aa");
    EXPECT_EQ(requirement({.kind = Source::directory, .url = "file:///p", .editable = true}), "-e file:///p");
    EXPECT_EQ(requirement({.kind = Source::repository, .url = "https://h/p", .vcs = "git", .commit = "abc"}),
              "p @ git+https://h/p@abc");
}

} // namespace

} // namespace containerize::pip

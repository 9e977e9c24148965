#include "../good.h"
#include "../temporary.h"
#include "spec/requirements.h"

#include <string>

#include <gtest/gtest.h>

namespace containerize::spec {

namespace {

using namespace std::string_literals;
using test::TemporaryDirectory;

std::vector<std::string> texts(const Requirements& requirements) {
    std::vector<std::string> all;
    for (const auto& line : requirements.lines)
        all.push_back(std::to_string(line.number) + ": " + line.text);
    return all;
}

/// The message without the directory's name; "" if there is none.
std::string message(const TemporaryDirectory& directory, const std::string& file = "r.txt") {
    const auto read = read_requirements(directory / file, directory.path());
    if (read) return {};
    EXPECT_EQ(read.error().fault, Fault::input);
    auto text = to_string(read.error());
    const auto name = directory.path().string() + "/";
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name))
        text.erase(at, name.size());
    return text;
}

} // namespace

TEST(Requirements, MoreThanAnyRealFileHasIsRefused) {
    const TemporaryDirectory directory;
    std::string many;
    for (int i = 0; i < 50'000; ++i)
        many += "a\n";
    directory.write("r.txt", many);
    EXPECT_EQ(message(directory), "");
    directory.write("r.txt", "-r other.txt\n" + many);
    directory.write("other.txt", "b\n");
    EXPECT_EQ(message(directory), "r.txt:50001: this file is too large: the limit is 50,000 requirements");
    directory.write("r.txt", "-r other.txt\nb\n");
    directory.write("other.txt", many);
    EXPECT_EQ(message(directory),
              "other.txt:49999: this file is too large: the limit is 50,000 requirements");

    const std::string hash = " \\\n    --hash=sha256:" + std::string(64, 'a');
    std::string long_one = "x==1";
    while (long_one.size() < (1U << 20U) - 1000)
        long_one += hash;
    directory.write("r.txt", long_one);
    EXPECT_EQ(message(directory), "");
    for (int i = 0; i < 500; ++i)
        long_one += hash;
    directory.write("r.txt", "y\n" + long_one);
    EXPECT_EQ(message(directory), "r.txt:2: this file is too large: the limit is 1 MiB for a line");

    // An expansion is longer than what is in the file.
    setenv("CONTAINERIZE_TEST_LONG", std::string(100'000, 'x').c_str(), 1);
    std::string expanding = "x @ https://h/";
    for (int i = 0; i < 9; ++i)
        expanding += "${CONTAINERIZE_TEST_LONG}";
    expanding += "\n";
    directory.write("r.txt", expanding);
    EXPECT_EQ(message(directory), "");
    std::string several;
    for (int i = 0; i < 20; ++i)
        several += expanding;
    directory.write("r.txt", several);
    EXPECT_EQ(message(directory), "r.txt:19: this file is too large: the limit is 16 MiB");
    std::string longest = "x @ https://h/";
    for (int i = 0; i < 30'000; ++i)
        longest += "${CONTAINERIZE_TEST_LONG}";
    directory.write("r.txt", longest);
    EXPECT_EQ(message(directory), "r.txt:1: this file is too large: the limit is 1 MiB for a line");
    unsetenv("CONTAINERIZE_TEST_LONG");
}

TEST(Requirements, LinesAsPipReadsThem) {
    setenv("CONTAINERIZE_TEST_TOKEN", "t0ken", 1);
    setenv("CONTAINERIZE_TEST_EMPTY", "", 1);
    const struct {
        std::string content;
        std::vector<std::string> lines;
    } cases[] = {
        {"numpy\n\n  scipy  # comment\n# all comment\nlast", {"1: numpy", "3: scipy", "5: last"}},
        {"a\r\nb\rc\n", {"1: a", "2: b", "3: c"}},
        {"\xEF\xBB\xBFnumpy\n", {"1: numpy"}},
        {"\xFF\xFEx\0\n\0y\0"s, {"1: x", "2: y"}},
        {"\xFE\xFF\0x\0\n"s, {"1: x"}},
        {"# -*- coding: latin-1 -*-\nx # caf\xE9\n", {"2: x"}},
        {"numpy==1 \\\n  --hash=sha256:aa \\\n  --hash=sha256:bb\nz\n",
         {"1: numpy==1   --hash=sha256:aa   --hash=sha256:bb", "4: z"}},
        {"a \\\n# ends it \\\nb\n", {"1: a", "3: b"}},
        {"# a comment is not continued \\\nb\n", {"2: b"}},
        {"a \\", {"1: a"}},
        {"git+https://h/x#egg=x\n", {"1: git+https://h/x#egg=x"}},
        {"--index-url "
         "https://${CONTAINERIZE_TEST_TOKEN}@h/${CONTAINERIZE_TEST_NONE}/${CONTAINERIZE_TEST_EMPTY}\n",
         {"1: --index-url https://t0ken@h/${CONTAINERIZE_TEST_NONE}/${CONTAINERIZE_TEST_EMPTY}"}},
        {"x @ https://h/${lower}/$CONTAINERIZE_TEST_TOKEN/${\n",
         {"1: x @ https://h/${lower}/$CONTAINERIZE_TEST_TOKEN/${"}},
    };
    for (const auto& one : cases) {
        const TemporaryDirectory directory;
        const auto read = read_requirements(directory.write("r.txt", one.content), directory.path());
        ASSERT_TRUE(read) << one.content << to_string(read.error());
        EXPECT_EQ(texts(*read), one.lines) << one.content;
    }
}

TEST(Requirements, VariablesThatMayHoldSecrets) {
    setenv("CONTAINERIZE_TEST_FEED", "feed-4711", 1);
    setenv("CONTAINERIZE_TEST_ADDRESS", "https://h/feed-4711", 1);
    const std::pair<std::string, bool> cases[] = {
        {"-i https://h/${CONTAINERIZE_TEST_FEED}/simple", true},
        {"x @ git+https://h/x.git?k=${CONTAINERIZE_TEST_FEED}", true},
        {"-i ${CONTAINERIZE_TEST_ADDRESS}", true},
        {"x --config-settings t=${CONTAINERIZE_TEST_FEED}", true},
        {"-i https://${CONTAINERIZE_TEST_FEED}/simple", false},
        {"-f file:///${CONTAINERIZE_TEST_FEED}/x", false},
        {"-f ${CONTAINERIZE_TEST_FEED}", false},
        {"-i https://h/x#${CONTAINERIZE_TEST_FEED}", false},
        {"-i https://h/x ${CONTAINERIZE_TEST_FEED}", false},
        {"x @ file://${CONTAINERIZE_TEST_ADDRESS}", true},
        {"a${CONTAINERIZE_TEST_FEED} @ https://h/${CONTAINERIZE_TEST_FEED}", true},
        {"x==${CONTAINERIZE_TEST_FEED}", false},
    };
    for (const auto& [content, may_hold] : cases) {
        const TemporaryDirectory directory;
        const auto read = read_requirements(directory.write("r.txt", content), directory.path());
        ASSERT_TRUE(read) << content << to_string(read.error());
        EXPECT_EQ(read->lines.front().written, content);
        EXPECT_EQ(!read->lines.front().variables.empty(), may_hold) << content;
    }
}

TEST(Requirements, NamesOfPackages) {
    const TemporaryDirectory directory;
    fs::create_directories(directory / "dir");
    directory.write("a.whl", "");
    directory.write("more.txt", "More.One>=2\n-c pins.txt\nlast\n");
    directory.write("pins.txt", "pinned==1\n-r within.txt\n");
    directory.write("within.txt", "also-pinned\n");
    const auto file = directory.write("r.txt", "six==1.16 --hash=sha256:aa\n"
                                               "requests [socks] >= 2.30\n"
                                               "demo@https://h/demo-1.whl\n"
                                               "other; python_version < '3'\n"
                                               "./dir\na.whl\n-e ./dir\nhttps://h/x.whl\n--pre\n"
                                               "-r more.txt\n");
    const auto read = test::good(read_requirements(file, directory.path()));
    std::vector<std::string> names;
    for (const auto& line : read.lines)
        if (!line.name.empty()) names.push_back(line.name);
    EXPECT_EQ(names, (std::vector<std::string>{"six", "requests", "demo", "More.One", "last"}));
}

TEST(Requirements, ALineMayConsistOfVariables) {
    setenv("QQ", "qq", 1);
    std::string content = "a";
    for (int i = 0; i < 200'000; ++i)
        content += "${QQ}";
    const TemporaryDirectory directory;
    const auto read = test::good(read_requirements(directory.write("r.txt", content), directory.path()));
    EXPECT_EQ(read.lines.front().text.size(), 400'001U);
    EXPECT_TRUE(read.lines.front().variables.empty());
}

TEST(Requirements, WhatPipAccepts) {
    const char* const lines[] = {
        "numpy",
        "Numpy.core_x-1",
        "numpy==1.0",
        "numpy === 1.0",
        "numpy ~=1.0, !=1.5 ; python_version < '3.13' and sys_platform == \"linux\"",
        "numpy (>=1.0)",
        "numpy[a, b]>=1",
        "numpy [a]",
        "numpy;python_version<'3'",
        "pkg @ https://host/pkg.zip#sha256=aa ; python_version > '3'",
        "pkg@git+ssh://git@host/repo.git@v1#subdirectory=x",
        "pkg @ file:///opt/pkg.whl",
        "pkg @ dir/pkg.whl",
        "https://host/pkg-1-py3-none-any.whl",
        "git+https://host/x.git@main#egg=x",
        "file:///opt/x.tar.gz",
        "./local",
        "./local[extra]",
        "./with blank",
        "local/ ; python_version > '3'",
        "pkg-1.0-py3-none-any.whl",
        "./pkg-1.0-py3-none-any.whl --hash=sha256:aa",
        "numpy --hash sha256:aa --config-settings=a=b -C x=y --global-option=\"--with quotes\"",
        "numpy -r not-read.txt",
        "-i https://host/simple --extra-index-url=https://other/simple",
        "--index-url 'https://host/simple'",
        "-ihttps://host/simple",
        "--extra-index https://host/simple",
        "--no-index --find-links ./local --pre --prefer-binary",
        "-f ./nowhere",
        "--no-binary :all: --only-binary=numpy,scipy",
        "--require-hashes",
        "--trusted-host host:8080",
        "--use-feature=fast-deps",
        "-e ./local",
        "-e ./local[dev,test]",
        "-e \"./with blank\"",
        "-e git+https://host/x.git#egg=x",
        "-e local#egg=x",
        "--editable=local",
        "--editable local",
        "-r https://host/requirements.txt",
        "--constraint=https://host/c.txt",
        "-r 'included file.txt'",
        "-rincluded\\ file.txt",
        "--requirem \"included file.txt\"",
        "-c included\\ file.txt",
    };
    const TemporaryDirectory directory;
    fs::create_directories(directory / "local");
    fs::create_directories(directory / "with blank");
    directory.write("pkg-1.0-py3-none-any.whl", "");
    directory.write("included file.txt", "six\n");
    for (const auto* line : lines) {
        directory.write("r.txt", line);
        EXPECT_EQ(message(directory), "") << line;
    }
}

TEST(Requirements, Mistakes) {
    const std::string not_one =
        "Write a package name and optional version conditions, such as `numpy>=1.26,<3`.";
    const std::string conda = "pip compares versions with `==`. A single `=` is conda syntax.";
    const struct {
        std::string content, message;
    } cases[] = {
        {"ok\nnumpy 1.0\n", "r.txt:2: invalid requirement: 'numpy 1.0'\n" + not_one},
        {"numpy=1.0\n", "r.txt:1: invalid requirement: 'numpy=1.0'\n" + conda},
        {"=1.0\n", "r.txt:1: invalid requirement: '=1.0'\n" + not_one},
        {"numpy[a\n", "r.txt:1: invalid requirement: 'numpy[a'\n" + not_one},
        {"numpy>=\n", "r.txt:1: invalid requirement: 'numpy>='\n" + not_one},
        {"numpy>=1 <2\n", "r.txt:1: invalid requirement: 'numpy>=1 <2'\n" + not_one},
        {"numpy (>=1\n", "r.txt:1: invalid requirement: 'numpy (>=1'\n" + not_one},
        {"six @@@ 1\n", "r.txt:1: invalid requirement: 'six @@@ 1'\n" + not_one},
        {"six @\n", "r.txt:1: invalid requirement: 'six @'\n" + not_one},
        {"numpy-\n", "r.txt:1: invalid requirement: 'numpy-'\n" + not_one},
        {"pip install numpy\n", "r.txt:1: invalid requirement: 'pip install numpy'\n" + not_one},
        {"a \\\nb\n", "r.txt:1: invalid requirement: 'a b'\n" + not_one},
        {"--frozen\n", "r.txt:1: pip has no option '--frozen' for requirements files\nRemove it, or set it "
                       "in pip's configuration."},
        {"-x y\n", "r.txt:1: pip has no option '-x' for requirements files\nRemove it, or set it in pip's "
                   "configuration."},
        {"numpy --target=/x\n", "r.txt:1: pip has no option '--target' for requirements files\nRemove it, or "
                                "set it in pip's configuration."},
        {"-r\n", "r.txt:1: '-r' needs a value\nWrite the value after the option."},
        {"--index-url 'https://h\n", "r.txt:1: a quote is not closed in '--index-url 'https://h'\nOptions "
                                     "follow shell rules. Write a literal quote as \\'."},
        {"\n-r missing.txt\n", "r.txt:2: cannot read 'missing.txt', which is included here: No such file or "
                               "directory\nPaths of included files are relative to the including file."},
        {"-c missing.txt\n", "r.txt:1: cannot read 'missing.txt', which is included here: No such file or "
                             "directory\nPaths of included files are relative to the including file."},
        {"numpy\ncaf\xE9\n", "r.txt:2: this is not UTF-8 text\nSave the file as UTF-8."},
        {"\xFF\xFEx\0\n\0\0\xD8"s, "r.txt:2: this is not UTF-8 text\nSave the file as UTF-8."},
        {"\xFF\xFEx\0\n\0y"s, "r.txt:2: this is not UTF-8 text\nSave the file as UTF-8."},
        {"numpy\n#\xC0\xAF\n", "r.txt:2: this is not UTF-8 text\nSave the file as UTF-8."},
        {"numpy\n#\xED\xA0\x80\n", "r.txt:2: this is not UTF-8 text\nSave the file as UTF-8."},
        {"numpy\n#\xF4\x90\x80\x80\n", "r.txt:2: this is not UTF-8 text\nSave the file as UTF-8."},
    };
    for (const auto& one : cases) {
        const TemporaryDirectory directory;
        directory.write("r.txt", one.content);
        EXPECT_EQ(message(directory), one.message) << one.content;
    }
}

TEST(Requirements, LocalPathsThatAreMissing) {
    for (const auto* line :
         {"./gone", "-e ./gone", "gone/", "./gone[extra]", "gone.whl", "--editable=gone[x]"}) {
        const TemporaryDirectory directory;
        directory.write("r.txt", "\n"s + line + "\n");
        const auto text = message(directory);
        EXPECT_TRUE(text.starts_with("r.txt:2: there is no file or directory '")) << line << "\n" << text;
        EXPECT_FALSE(text.contains('[')) << text;
        EXPECT_TRUE(text.ends_with("\nLocal paths are relative to " + directory.path().string() + "."))
            << text;
    }
}

TEST(Requirements, IncludesAreRelativeToTheirFileAndLocalPathsToTheWorkingDirectory) {
    const TemporaryDirectory directory;
    directory.write("r.txt", "one\n-r sub/a.txt\nfour\n");
    directory.write("sub/a.txt", "two\n-c b.txt\n-e ./project\n");
    directory.write("sub/b.txt", "three<4\n");
    fs::create_directories(directory / "project");
    const auto read = test::good(read_requirements(directory / "r.txt", directory.path()));
    EXPECT_EQ(texts(read), (std::vector<std::string>{"1: one", "2: -r sub/a.txt", "1: two", "2: -c b.txt",
                                                     "1: three<4", "3: -e ./project", "3: four"}));
    EXPECT_EQ(read.files,
              (std::vector<fs::path>{directory / "r.txt", directory / "sub/a.txt", directory / "sub/b.txt"}));
    EXPECT_EQ(read.lines[4].file, directory / "sub/b.txt");
    EXPECT_EQ(read.editable, std::vector<std::string>{"./project"});
}

TEST(Requirements, MistakesInIncludedFilesNameThem) {
    const TemporaryDirectory directory;
    directory.write("r.txt", "-r sub/a.txt\n");
    directory.write("sub/a.txt", "ok\n-r gone.txt\n");
    EXPECT_EQ(message(directory),
              "sub/a.txt:2: cannot read 'sub/gone.txt', which is included here: No such file or "
              "directory\nPaths of included files are relative to the including file.");
}

TEST(Requirements, CyclesAreShown) {
    const TemporaryDirectory directory;
    directory.write("r.txt", "-r a.txt\n");
    directory.write("a.txt", "x\n-c ./b.txt\n");
    directory.write("b.txt", "-r a.txt\n");
    EXPECT_EQ(message(directory), "b.txt:1: the requirements file includes itself: a.txt -> b.txt -> "
                                  "a.txt\nRemove one of these -r or -c lines.");
    directory.write("a.txt", "-r a.txt\n");
    EXPECT_EQ(message(directory), "a.txt:1: the requirements file includes itself: a.txt -> a.txt\nRemove "
                                  "one of these -r or -c lines.");
}

TEST(Requirements, IncludesHaveALimitedDepth) {
    const TemporaryDirectory directory;
    for (int i = 2; i <= 100; ++i)
        directory.write(std::to_string(i) + ".txt", "-r " + std::to_string(i + 1) + ".txt\n");
    directory.write("101.txt", "x\n");
    directory.write("r.txt", "-r 3.txt\n");
    EXPECT_EQ(message(directory), "");
    directory.write("r.txt", "-r 2.txt\n");
    EXPECT_EQ(message(directory),
              "100.txt:1: files are included too deeply: at most 100 may include one another");
}

TEST(Requirements, AFileMayBeIncludedTwice) {
    const TemporaryDirectory directory;
    directory.write("r.txt", "-r a.txt\n-r b.txt\n");
    directory.write("a.txt", "-c c.txt\n");
    directory.write("b.txt", "-c c.txt\n");
    directory.write("c.txt", "six<2\n");
    EXPECT_EQ(read_requirements(directory / "r.txt", directory.path())->files.size(), 4U);
}

TEST(Requirements, DigestCoversIncludedFiles) {
    const TemporaryDirectory directory;
    directory.write("r.txt", "-r a.txt\n");
    const auto digest = [&](const char* content) {
        directory.write("a.txt", content);
        return read_requirements(directory / "r.txt", directory.path())->sha256;
    };
    EXPECT_EQ(digest("numpy==1\n").size(), 64U);
    EXPECT_EQ(digest("numpy==1\n"), digest("numpy==1\n"));
    EXPECT_NE(digest("numpy==1\n"), digest("numpy==2\n"));
}

TEST(Requirements, LongLinesAreNoTrouble) {
    const TemporaryDirectory directory;
    directory.write("r.txt", std::string(1U << 20U, 'a') + "\n" + std::string(1U << 20U, '[') + "\n");
    EXPECT_TRUE(message(directory).starts_with("r.txt:2: invalid requirement: "));
}

} // namespace containerize::spec

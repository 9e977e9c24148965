#include "../good.h"
#include "pip/resolution.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace containerize::pip {

namespace {

using Kind = ResolvedPackage::Kind;

const std::string digest(64, 'a');
const std::string other_digest(64, 'b');

std::string report(const std::string& packages) {
    return R"({"version": "1", "pip_version": "26.0", "install": [)" + packages + "]}";
}

std::string reported(const std::string& name, const std::string& info, bool direct = false,
                     bool requested = true) {
    return fmt::format(R"({{"download_info": {}, "is_direct": {}, "requested": {},
                            "metadata": {{"name": "{}", "version": "1.0"}}}})",
                       info, direct, requested, name);
}

std::string archive(const std::string& url, const std::string& sha256 = digest) {
    return fmt::format(R"({{"url": "{}", "archive_info": {{"hashes": {{"sha256": "{}"}}}}}})", url, sha256);
}

TEST(Report, TellsTheWheels) {
    const auto resolution = test::good(read_report(
        report(reported("numpy", archive("https://h/numpy-1.0%2Bcpu-cp311-cp311-linux_x86_64.whl")) + "," +
               reported("Jinja2", archive("file:///w/jinja2-1.0-py3-none-any.whl"), false, false))));
    ASSERT_EQ(resolution.packages.size(), 2U);
    EXPECT_EQ(resolution.obstacle, "");
    const auto& jinja = resolution.packages[0];
    EXPECT_EQ(jinja.name, "Jinja2");
    EXPECT_EQ(jinja.url, "file:///w/jinja2-1.0-py3-none-any.whl");
    EXPECT_FALSE(jinja.requested);
    const auto& numpy = resolution.packages[1];
    EXPECT_EQ(numpy.version, "1.0");
    EXPECT_EQ(numpy.sha256, digest);
    EXPECT_EQ(numpy.kind, Kind::wheel);
    EXPECT_EQ(numpy.direct_url, "");
    EXPECT_TRUE(numpy.requested);
    EXPECT_EQ(file_name_in(numpy.url), "numpy-1.0+cpu-cp311-cp311-linux_x86_64.whl");
}

TEST(Report, TellsWhatMustBeBuilt) {
    const auto build = [](const std::string& info, bool direct) {
        const auto resolution = test::good(read_report(report(reported("p", info, direct))));
        EXPECT_EQ(resolution.packages.at(0).kind, Kind::needs_build);
        EXPECT_EQ(resolution.packages.at(0).url, "");
        EXPECT_EQ(resolution.packages.at(0).sha256, "");
        EXPECT_EQ(resolution.packages.at(0).direct_url.empty(), !direct);
        return resolution.packages.at(0).requirement();
    };
    EXPECT_EQ(build(archive("https://h/p-1.0.tar.gz"), false), "p @ https://h/p-1.0.tar.gz#sha256=" + digest);
    EXPECT_EQ(build(archive("https://h/p.zip"), true), "p @ https://h/p.zip#sha256=" + digest);
    EXPECT_EQ(build(R"({"url": "file:///p", "dir_info": {}})", true), "p @ file:///p");
    EXPECT_EQ(build(R"({"url": "https://h/p", "subdirectory": "d",
                        "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": "c0ffee"}})",
                    true),
              "p @ git+https://h/p@c0ffee#subdirectory=d");
}

TEST(Report, KeepsTheOriginOfDirectWheels) {
    // The form of pip before 23.1
    const auto resolution = test::good(read_report(report(reported(
        "w",
        R"({"url": "file:///w-1.0-py3-none-any.whl", "archive_info": {"hash": "sha256=)" + digest + "\"}}",
        true))));
    EXPECT_EQ(resolution.packages.at(0).sha256, digest);
    EXPECT_EQ(resolution.packages.at(0).direct_url, R"({"archive_info":{"hash":"sha256=)" + digest +
                                                        R"("},"url":"file:///w-1.0-py3-none-any.whl"})");
}

TEST(Report, NamesObstacles) {
    const auto obstacle = [](const std::string& info, bool direct) {
        return test::good(read_report(report(reported("p", info, direct)))).obstacle;
    };
    EXPECT_EQ(obstacle(R"({"url": "file:///p", "dir_info": {"editable": true}})", true), "p is editable");
    EXPECT_EQ(obstacle(R"({"url": "https://h/p-1.0-py3-none-any.whl", "archive_info": {}})", false),
              "the index has no SHA-256 checksum for p");
}

TEST(Report, IsNotTrusted) {
    const auto wheel = archive("https://h/p-1.0-py3-none-any.whl");
    for (const auto& text :
         {std::string(), std::string("[]"), std::string(R"({"version": "2", "install": []})"),
          std::string(R"({"version": "1", "install": 3})"), report(reported("p\\n-r x", wheel)),
          report(reported("", wheel)), report(reported("p", archive("https://h/p 1.whl"))),
          report(reported("p", archive("/etc/passwd.whl"))),
          report(reported("p", archive("https://h/p.whl", "ab")))})
        EXPECT_FALSE(read_report(text)) << text;
    EXPECT_TRUE(test::good(read_report(report(""))).packages.empty());
}

TEST(Planned, IsReadFromLinesOfUv) {
    const auto pin = [](std::string_view line) {
        const auto planned = planned_by_uv(line);
        return planned ? planned->pin() : "";
    };
    EXPECT_EQ(pin(" + six==1.16.0"), "six==1.16.0");
    EXPECT_EQ(pin(" + torch==2.13.0+cpu"), "torch==2.13.0+cpu");
    EXPECT_EQ(pin(" + proj @ file:///tmp/proj"), "proj @ file:///tmp/proj");
    EXPECT_EQ(pin(" + proj==1.2 (from file:///tmp/proj)"), "proj @ file:///tmp/proj");
    EXPECT_EQ(pin(" - six==1.16.0"), "");
    EXPECT_EQ(pin("Would install 17 packages"), "");
}

class UvLock : public testing::Test {
protected:
    Result<Resolution> read(const std::string& packages) {
        const auto text = "lock-version = \"1.0\"\n" + packages;
        return read_lock_of_uv({.text = text,
                                .directory = "/base",
                                .planned = planned,
                                .tags = tags,
                                .requested = {"numpy"},
                                .permitted = permitted});
    }

    static std::string wheel(const std::string& url, const std::string& sha256 = digest) {
        return fmt::format(R"({{ url = "{}", size = 7, hashes = {{ sha256 = "{}" }} }})", url, sha256);
    }

    static std::string package(const std::string& name, const std::string& rest) {
        return fmt::format("[[packages]]\nname = \"{}\"\nversion = \"1.0\"\n{}\n", name, rest);
    }

    std::vector<Planned> planned = {{.name = "numpy", .version = "1.0"}};
    Permitted permitted;
    TagOrder tags{tags_of({.implementation = "cpython",
                           .minor = 11,
                           .machine = "x86_64",
                           .libc = "glibc",
                           .libc_version = {2, 36}})};
    const std::string old = "https://h/numpy-1.0-cp311-cp311-manylinux2014_x86_64.whl";
    const std::string best = "https://h/numpy-1.0-cp311-cp311-manylinux_2_28_x86_64.whl";
    const std::string foreign = "https://h/numpy-1.0-cp312-cp312-manylinux_2_28_x86_64.whl";
};

TEST_F(UvLock, HasTheBestWheel) {
    const auto wheels =
        "wheels = [" + wheel(old, other_digest) + "," + wheel(best) + "," + wheel(foreign) + "]";
    auto resolution = test::good(read(package("numpy", wheels) + package("satisfied", "wheels = []")));
    ASSERT_EQ(resolution.packages.size(), 1U);
    const auto& numpy = resolution.packages[0];
    EXPECT_EQ(numpy.url, best);
    EXPECT_EQ(numpy.sha256, digest);
    EXPECT_EQ(numpy.size, 7U);
    EXPECT_TRUE(numpy.requested);
    permitted["numpy"] = {other_digest};
    EXPECT_EQ(test::good(read(package("numpy", wheels))).packages.at(0).url, old);
}

TEST_F(UvLock, HasFilesOfThisMachine) {
    planned = {{.name = "a", .url = "file:///base/d/a-1.0-py3-none-any.whl"},
               {.name = "t", .version = "1.0"}};
    const auto resolution = test::good(
        read(package("a", R"(archive = { path = "d/a-1.0-py3-none-any.whl", hashes = { sha256 = ")" + digest +
                              "\" } }") +
             package("t", "wheels = [" + wheel("file:///w/t-1.0+cpu-py3-none-any.whl") + "]")));
    ASSERT_EQ(resolution.packages.size(), 2U);
    EXPECT_EQ(resolution.packages[0].url, "file:///base/d/a-1.0-py3-none-any.whl");
    EXPECT_NE(resolution.packages[0].direct_url.find(R"("archive_info":{"hash")"), std::string::npos);
    EXPECT_EQ(file_name_in(resolution.packages[1].url), "t-1.0+cpu-py3-none-any.whl");
}

TEST_F(UvLock, NamesWhatMustBeBuilt) {
    const auto build = [&](const std::string& rest, bool direct) {
        const auto resolution = test::good(read(package("numpy", rest)));
        EXPECT_EQ(resolution.packages.at(0).kind, Kind::needs_build);
        EXPECT_EQ(resolution.packages.at(0).sha256, "");
        EXPECT_EQ(resolution.packages.at(0).direct_url.empty(), !direct);
        return resolution.packages.at(0).requirement();
    };
    const auto line = "numpy @ https://h/numpy-1.0.tar.gz#sha256=" + digest;
    const auto sdist = "sdist = " + wheel("https://h/numpy-1.0.tar.gz");
    EXPECT_EQ(build(sdist, false), line);
    EXPECT_EQ(build(sdist + "\nwheels = [" + wheel(foreign) + "]", false), line);
    EXPECT_EQ(build("archive = " + wheel("https://h/numpy-1.0.tar.gz"), true), line);
    EXPECT_EQ(build(R"(directory = { path = "../p" })", true), "numpy @ file:///p");
    EXPECT_EQ(
        build(R"(vcs = { type = "git", url = "https://h/p", commit-id = "ab", subdirectory = "d" })", true),
        "numpy @ git+https://h/p@ab#subdirectory=d");
    EXPECT_FALSE(read(package("numpy", "wheels = [" + wheel(foreign) + "]")));
}

TEST_F(UvLock, IsNotTrusted) {
    EXPECT_FALSE(read("")); // numpy is missing
    EXPECT_FALSE(read("[[packages"));
    EXPECT_FALSE(read(package("numpy", "wheels = [" + wheel(best, "ab") + "]")));
    EXPECT_FALSE(read("packages = 3"));
    EXPECT_EQ(test::good(read(package("numpy", R"(wheels = [{ url = ")" + best + "\" }]"))).obstacle,
              "the index has no SHA-256 checksum for numpy");
}

} // namespace

} // namespace containerize::pip

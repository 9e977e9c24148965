#include "../good.h"
#include "../temporary.h"
#include "wheel/archive.h"
#include "zip_writer.h"

#include <map>

#include <gtest/gtest.h>

namespace containerize::wheel {
namespace {

using test::error_of;
using test::good;
using test::zip_of;
using test::ZipMember;

constexpr const char* file_name = "Some_Pkg-1.0-py3-none-any.whl";
constexpr const char* metadata = "Metadata-Version: 2.1\nName: some.pkg\nVersion: 1.0\n\nVersion: none\n";
constexpr const char* wheel_text = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n";
constexpr const char* sum_of_x = "sha256=LXEWQrcmsEQBYnyp-6wy9chTD7GQPMTbAiWHF5IaSIE"; // of "x"

/// A good wheel with further files before those of .dist-info.
std::vector<ZipMember> with(std::vector<ZipMember> files, const std::string& record = "") {
    files.push_back({.name = "some_pkg-1.0.dist-info/METADATA", .content = metadata});
    files.push_back({.name = "some_pkg-1.0.dist-info/WHEEL", .content = wheel_text, .deflated = true});
    files.push_back({.name = "some_pkg-1.0.dist-info/RECORD", .content = record});
    return files;
}

class Wheels : public testing::Test {
protected:
    OpenFile file(const std::string& bytes) { return good(OpenFile::open(directory_.write("file", bytes))); }

    Result<WheelArchive> open(const std::vector<ZipMember>& members, const char* name = file_name) {
        return WheelArchive::open(file(zip_of(members)), name);
    }
    /// The place and content of each file.
    Result<std::vector<std::string>> read(const std::vector<ZipMember>& members) {
        found_.clear();
        const auto wheel = TRY(open(members));
        return wheel.payload([&](const WheelEntry& entry, const ReadMore& more) -> Status {
            std::string content;
            for (;;) {
                const auto bytes = TRY(more());
                if (bytes.empty()) break;
                content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            }
            EXPECT_EQ(content.size(), entry.size);
            found_[std::string(directory_of(entry.place.scheme)) + "/" + entry.place.path] = content;
            modes_[entry.place.path] = entry.mode;
            return {};
        });
    }
    /// The reason for which such a wheel is refused, whenever that is found.
    std::string refusal(const std::vector<ZipMember>& members) { return error_of(read(members)).why; }

    test::TemporaryDirectory directory_;
    std::map<std::string, std::string> found_;
    std::map<std::string, mode_t> modes_;
};

TEST_F(Wheels, EachFileHasItsPlace) {
    const auto members =
        with({{.name = "a/", .mode = 040755},
              {.name = "a/__init__.py", .content = std::string(3'000'000, 'a'), .deflated = true},
              {.name = "a/empty.py"},
              {.name = "some_pkg-1.0.data/scripts/tool", .content = "#!python\n", .mode = 0100755},
              {.name = "some_pkg-1.0.data/data/share/x", .content = "x", .mode = 0100600},
              {.name = "some_pkg-1.0.data/headers/x.h", .content = "h"},
              {.name = "some_pkg-1.0.data/platlib/b.so", .content = "so"},
              {.name = "some_pkg-1.0.data/purelib/./c.py", .content = "c"}});
    ASSERT_TRUE(read(members));
    EXPECT_EQ(found_["site-packages/a/__init__.py"].size(), 3'000'000);
    EXPECT_EQ(found_["scripts/tool"], "#!python\n");
    EXPECT_EQ(found_["data/share/x"], "x");
    EXPECT_EQ(found_["headers/x.h"], "h");
    EXPECT_EQ(found_["site-packages/b.so"], "so");
    EXPECT_EQ(found_["site-packages/c.py"], "c");
    EXPECT_EQ(found_["site-packages/some_pkg-1.0.dist-info/METADATA"], metadata);
    EXPECT_EQ(found_.size(), 10);
    EXPECT_EQ(modes_["tool"], 0755);
    EXPECT_EQ(modes_["share/x"], 0644);

    const auto wheel = good(open(members));
    EXPECT_EQ(wheel.dist_info().directory, "some_pkg-1.0.dist-info");
    EXPECT_EQ(wheel.dist_info().metadata, metadata);
    EXPECT_EQ(wheel.dist_info().wheel, wheel_text);
    EXPECT_EQ(wheel.dist_info().entry_points, "");
    EXPECT_GT(wheel.unpacked_size(), 3'000'000);
}

TEST_F(Wheels, NamesMayHaveAnyCharacters) {
    ASSERT_TRUE(
        read(with({{.name = "é/ü.py", .content = "x", .flags = 0x800}, {.name = "ö.py", .content = "y"}})));
    EXPECT_EQ(found_["site-packages/é/ü.py"], "x");
    EXPECT_EQ(found_["site-packages/ö.py"], "y");
    EXPECT_EQ(refusal(with({{.name = "\xff.py"}})), "'?.py' is not UTF-8");
}

TEST_F(Wheels, PathsThatEscapeAreRefused) {
    for (const auto* const name : {"/etc/passwd", "../x", "a/../../x", "a/..", "..\\x", "a\\..\\..\\x", "\\x",
                                   "some_pkg-1.0.data/data/../../x", "some_pkg-1.0.data/scripts/../x"})
        EXPECT_EQ(refusal(with({{.name = name}})).substr(std::string(name).size() + 2),
                  " points outside the directory of the installation, or is too long")
            << name;
    EXPECT_NE(refusal(with({{.name = "../x/", .mode = 040755}})).find("points outside"), std::string::npos);
    EXPECT_NE(refusal(with({{.name = ""}})).find("points outside"), std::string::npos);
    EXPECT_NE(refusal(with({{.name = std::string(300, 'a')}})).find("too long"), std::string::npos);
}

TEST_F(Wheels, OnlyFilesAreInstalled) {
    EXPECT_EQ(refusal(with({{.name = "l", .content = "/etc/passwd", .mode = 0120777}})), "'l' is a link");
    EXPECT_EQ(refusal(with({{.name = "c", .mode = 020644}})), "'c' is not a file");
    EXPECT_EQ(refusal(with({{.name = "secret", .content = "x", .flags = 1}})), "'secret' is encrypted");
}

TEST_F(Wheels, UnknownKindsOfFilesAreRefused) {
    EXPECT_EQ(refusal(with({{.name = "some_pkg-1.0.data/etc/x"}})),
              "'some_pkg-1.0.data/etc/x' is in a directory for an unknown kind of files");
    EXPECT_EQ(refusal(with({{.name = "some_pkg-1.0.data/x"}})),
              "'some_pkg-1.0.data/x' is not in a directory for a kind of files");
}

TEST_F(Wheels, APlaceHasOneContent) {
    ASSERT_TRUE(read(with({{.name = "a.py", .content = "1"}, {.name = "a.py", .content = "1"}})));
    EXPECT_EQ(found_["site-packages/a.py"], "1");
    const auto* const why = "'a.py' is in it twice, with different content";
    EXPECT_EQ(refusal(with({{.name = "a.py", .content = "1"}, {.name = "a.py", .content = "2"}})), why);
    EXPECT_EQ(refusal(with({{.name = "a.py", .content = "1"}, {.name = "a.py", .content = "22"}})), why);
    EXPECT_EQ(refusal(with({{.name = "some_pkg-1.0.data/purelib/a.py", .content = "1"}, {.name = "a.py"}})),
              why);
    auto twice = with({});
    twice.push_back(
        {.name = "some_pkg-1.0.dist-info/WHEEL", .content = std::string(twice[1].content.size(), ' ')});
    EXPECT_NE(refusal(twice).find("is in it twice"), std::string::npos);

    const auto* const both = "'site-packages/a' is a file and also a directory";
    EXPECT_EQ(refusal(with({{.name = "a"}, {.name = "a/b/c"}})), both);
    EXPECT_EQ(refusal(with({{.name = "a/b/c"}, {.name = "a"}})), both);
    EXPECT_EQ(refusal(with({{.name = "a"}, {.name = "a/", .mode = 040755}})), both);
}

TEST_F(Wheels, ContentIsAsDeclared) {
    const std::string large(100'000, 'x');
    for (const bool packed : {false, true}) {
        EXPECT_NE(refusal(with({{.name = "a", .content = large, .deflated = packed, .wrong_crc = 1}}))
                      .find("wrong checksum"),
                  std::string::npos);
        EXPECT_NE(refusal(with({{.name = "a", .content = large, .deflated = packed, .declared_size = 10}})),
                  "");
        EXPECT_NE(
            refusal(with({{.name = "a", .content = large, .deflated = packed, .declared_size = 200'000}})),
            "");
    }
    const auto bytes = zip_of(with({{.name = "a", .content = large}}));
    const auto cut = WheelArchive::open(file(bytes.substr(0, bytes.size() / 2)), file_name);
    EXPECT_NE(to_string(error_of(cut)).find("the wheel Some_Pkg-1.0-py3-none-any.whl is damaged"),
              std::string::npos);
}

TEST_F(Wheels, ArchivesThatCanBeReadInTwoWaysAreRefused) {
    const auto why = [&](const std::string& bytes) {
        return error_of(WheelArchive::open(file(bytes), file_name)).why;
    };
    const auto bytes = zip_of(with({{.name = "a.py", .content = "x"}}));
    EXPECT_EQ(why("prefix" + bytes), "there is something before or in it");
    EXPECT_EQ(why(bytes + "suffix"), "it is not a zip archive, or it is truncated");
    EXPECT_EQ(why(bytes + bytes), "there is something before or in it");
    EXPECT_EQ(why("no zip"), "it is not a zip archive, or it is truncated");
    EXPECT_EQ(why(""), "it is not a zip archive, or it is truncated");
    EXPECT_NE(refusal(with({{.name = std::string("a\0b", 3)}})).find("points outside"), std::string::npos);
    EXPECT_EQ(refusal(with({{.name = "a.py", .name_in_directory = "b.py"}})),
              "a file's header differs from the directory");
    // Both entries of the directory name the first file's data.
    auto shared = bytes;
    const auto second = shared.rfind("PK\1\2", shared.find("METADATA", shared.find("PK\1\2")));
    shared.replace(second + 42, 4, std::string(4, '\0'));
    EXPECT_EQ(why(shared), "files in it overlap");
}

TEST_F(Wheels, HugeFilesAreRefused) {
    std::vector<ZipMember> files;
    for (int i = 0; i < 20; ++i)
        files.push_back(
            {.name = std::to_string(i), .content = "x", .deflated = true, .declared_size = 0xFFFFFFF0});
    EXPECT_NE(refusal(with(files)).find("makes it larger than"), std::string::npos);
}

TEST_F(Wheels, DistInfoIsComplete) {
    const auto why = [&](std::vector<ZipMember> members, const char* name = file_name) {
        return error_of(open(members, name)).why;
    };
    const auto without = [](std::size_t index) {
        auto members = with({});
        members.erase(members.begin() + static_cast<std::ptrdiff_t>(index));
        return members;
    };
    const auto changed = [](std::size_t index, const char* content) {
        auto members = with({});
        members[index].content = content;
        return members;
    };
    EXPECT_EQ(why({{.name = "a.py"}}), "it has no .dist-info directory");
    EXPECT_EQ(why(with({{.name = "b-1.dist-info/x"}})),
              "it has several .dist-info directories: b-1.dist-info, some_pkg-1.0.dist-info");
    EXPECT_EQ(why(without(0)), "it has no METADATA file");
    EXPECT_EQ(why(without(1)), "it has no WHEEL file");
    EXPECT_EQ(why(without(2)), "it has no RECORD file");
    EXPECT_EQ(why(with({}), "other-1.0-py3-none-any.whl"),
              "it is another package: METADATA in it names 'some.pkg'");
    EXPECT_EQ(why(changed(0, "Name: x\n")), "METADATA in it has no name or no version");
    EXPECT_EQ(why(changed(1, "Generator: x\n")), "WHEEL in it has no Wheel-Version");
    EXPECT_EQ(why(changed(1, "wheel-version: 2.0\n")),
              "it has version '2.0' of the wheel format: only versions 1.x are known");
    EXPECT_TRUE(open(changed(1, "Wheel-Version: 1.9\n")));
    EXPECT_EQ(why(changed(2, "a.py,,\n\"b.py,,\n")),
              "RECORD in it is malformed: line 2 has a quote that is misplaced, or not closed");
    EXPECT_EQ(why(changed(2, "\xff,,\n")), "RECORD in it is malformed: it is not UTF-8");
    EXPECT_EQ(error_of(open(with({}), "some_pkg.whl")).what, "'some_pkg.whl' is not a wheel");
}

TEST_F(Wheels, MistakesInRecordAreWarnings) {
    const std::string own = "some_pkg-1.0.dist-info/METADATA,,\nsome_pkg-1.0.dist-info/WHEEL,,\n"
                            "some_pkg-1.0.dist-info/RECORD,,\n";
    const auto right = own + "a," + sum_of_x + ",1\nb," + sum_of_x + "=,\n";
    EXPECT_TRUE(
        good(read(with({{.name = "a", .content = "x"}, {.name = "b", .content = "x"}}, right))).empty());
    const auto warnings = good(read(with({{.name = "a", .content = "y"},
                                          {.name = "b", .content = "xx"},
                                          {.name = "c"},
                                          {.name = "some_pkg-1.0.dist-info/RECORD.jws"}},
                                         right + "d,,\n")));
    const std::string start = std::string("RECORD of the wheel ") + file_name;
    EXPECT_EQ(warnings, (std::vector<std::string>{start + " has wrong checksums or sizes: 'a' and 1 more",
                                                  start + " does not list all files: 'c'",
                                                  start + " lists files that do not exist: 'd'"}));
}

TEST_F(Wheels, AVisitorNeedNotRead) {
    const auto wheel = good(open(with({{.name = "a", .content = "x", .wrong_crc = 1}})));
    EXPECT_FALSE(wheel.payload([](const WheelEntry&, const ReadMore&) -> Status { return {}; }));
}

} // namespace
} // namespace containerize::wheel

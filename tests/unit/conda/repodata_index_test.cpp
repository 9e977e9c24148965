#include "../good.h"
#include "../temporary.h"
#include "conda/repodata_index.h"
#include "core/filesystem.h"
#include "core/mapped_file.h"

#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::conda {
namespace {

using test::TemporaryDirectory;

constexpr std::string_view repodata_text = R"({"info": {"subdir": "linux-64"}, "packages": {
  "a-1-0.tar.bz2": {"name": "a", "depends": ["old"]},
  "a-2-0.tar.bz2": {"name": "a", "depends": ["b >=1", "c"]},
  "odd.txt": {"name": "odd"}, "x\/y-1-0.conda": {"name": "x"}, "\u0061-9-0.conda": {"name": "a"}, "n-1-0.conda": {"name": 3}, "m-1-0.conda": []
}, "packages.conda": {
  "a-1-0.conda": {"name": "a", "depends": ["B[version='>=1']", "conda-forge::d 1.*", "b"]},
  "a_b-1-0.conda": {"depends": [], "name": "a_b"},
  "e-1-0.conda": {"name": "\u0065", "depends": ["f\u003e=1", "lib*", "lib* 2", "^r\\.s$", ".bad", "", "\"\\"]}
}})";

class RepodataIndexTest : public ::testing::Test {
protected:
    RepodataIndexTest() {
        list_.channel = {.name = "main", .url = "https://example.org/main", .mirrors = {}};
        list_.subdir = "linux-64";
        list_.identity = "0123";
        list_.cache = directory_.path();
    }

    RepodataIndex index(std::string_view content = repodata_text) {
        const auto file =
            MappedFile::map(OpenFile::open(directory_.write("repodata.json", std::string(content))).value());
        auto made = RepodataIndex::of(list_, file->text());
        EXPECT_TRUE(made) << to_string(made.error());
        return std::move(*made);
    }

    [[nodiscard]] static std::string as_index(const std::string& lines) {
        return fmt::format("containerize-index-2 {} 1 {}\n", repodata_text.size(),
                           std::hash<std::string_view>()(lines)) +
               lines;
    }

    std::vector<std::string> records(const RepodataIndex& index, std::string_view name) {
        std::vector<std::string> found;
        for (const auto& place : index.places(name))
            found.emplace_back(repodata_text.substr(place.offset, place.length));
        return found;
    }

    TemporaryDirectory directory_;
    Repodata list_;
};

using Texts = std::vector<std::string>;
using Views = std::vector<std::string_view>;

TEST_F(RepodataIndexTest, SaysWhereRecordsAreAndWhatTheyNeed) {
    const auto made = index();
    EXPECT_EQ(made.names(), (Views{"a", "a_b", "e"}));
    EXPECT_EQ(made.records(), 5U);
    EXPECT_EQ(made.needs("a"), (Views{"b", "d", "c"})) << "not what only a hidden record needs";
    EXPECT_EQ(made.needs("a_b"), Views());
    EXPECT_EQ(made.needs("e"), (Views{"f", "lib*", "^r\\.s$"}));
    EXPECT_EQ(records(made, "a_b"), (Texts{R"("a_b-1-0.conda": {"depends": [], "name": "a_b"})"}));
    EXPECT_EQ(
        records(made, "a"),
        (Texts{R"("a-1-0.conda": {"name": "a", "depends": ["B[version='>=1']", "conda-forge::d 1.*", "b"]})",
               R"("a-2-0.tar.bz2": {"name": "a", "depends": ["b >=1", "c"]})",
               R"("\u0061-9-0.conda": {"name": "a"})"}));
    for (const char* none : {"", "b", "a_", "e\t", "zzz"}) {
        EXPECT_EQ(made.needs(none), Views()) << none;
        EXPECT_TRUE(made.places(none).empty()) << none;
    }
}

TEST_F(RepodataIndexTest, AListWithoutPackagesHasNoNames) {
    EXPECT_EQ(index("{}").names(), Views());
    EXPECT_EQ(index(R"({"packages": {}, "packages.conda": {}})").records(), 0U);
}

TEST_F(RepodataIndexTest, IsKeptAndMadeAgainWhereItIsNotOfThisList) {
    const auto kept = directory_ / "0123.containerize-index-2";
    index();
    const auto whole = test::good(read_file(kept));
    // The index has a change that the list does not have: finding it shows that the index was read.
    const auto end = whole.size();
    std::string lines = whole.substr(whole.find('\n') + 1);
    lines.replace(lines.find("a_b\t"), 3, "a_c");
    const auto other = as_index(lines);
    directory_.write(kept.filename().string(), other);
    EXPECT_EQ(index().names(), (Views{"a", "a_c", "e"}));

    std::string unsorted = lines, other_place = whole;
    unsorted.replace(unsorted.find("\ne\t"), 2, "\n0");
    other_place[end - 2] ^= 1;
    for (const std::string& damaged :
         {whole.substr(0, end - 3), whole + "f\t\t0 1\n", as_index(unsorted), as_index(lines + "f"),
          other_place, std::string("x"), "another-index-1" + whole.substr(whole.find(' '))}) {
        directory_.write(kept.filename().string(), damaged);
        EXPECT_EQ(index().names(), (Views{"a", "a_b", "e"})) << damaged;
        EXPECT_EQ(read_file(kept).value_or(""), whole);
    }
    directory_.write(kept.filename().string(), other);
    fs::permissions(kept, fs::perms::all);
    EXPECT_EQ(index().names(), (Views{"a", "a_b", "e"})) << "others can write to it";
}

TEST_F(RepodataIndexTest, IsForThisUserAloneWhateverTheUmask) {
    const auto before = umask(0);
    index();
    umask(before);
    const auto kept = directory_ / "0123.containerize-index-2";
    EXPECT_EQ(fs::status(kept).permissions() & (fs::perms::group_write | fs::perms::others_write),
              fs::perms::none);
    fs::remove(kept);
    ASSERT_EQ(mkfifo(kept.c_str(), 0600), 0);
    EXPECT_EQ(index().records(), 5U) << "nothing waits for a pipe";
}

TEST_F(RepodataIndexTest, PlacesOutsideOfTheListAreNone) {
    index();
    const auto kept = directory_ / "0123.containerize-index-2";
    directory_.write(kept.filename().string(), as_index("a\t\t99999 1 5 99999 18446744073709551615 2 7 3\n"));
    const auto places = index().places("a");
    ASSERT_EQ(places.size(), 1U);
    EXPECT_EQ(places[0].offset, 7U);
}

TEST(NameOfDependency, IsWhatLibsolvTakesForIt) {
    for (const auto& [dependency, name] : {std::pair{"numpy >=1.20,<2", "numpy"},
                                           {"NumPy", "numpy"},
                                           {"python>=3.8", "python"},
                                           {"a~=1", "a"},
                                           {"a!=1", "a"},
                                           {"conda-forge::x 1.*", "x"},
                                           {"b[version='>=1',build=*cuda*]", "b"},
                                           {"lib*", "lib*"},
                                           {"ns:b >=1", "b"},
                                           {"a::b::P16", "p16"},
                                           {"^x\\.Y$ 1", "^x\\.y$"},
                                           {"", ""}})
        EXPECT_EQ(name_of_dependency(dependency), name) << dependency;
}

} // namespace
} // namespace containerize::conda

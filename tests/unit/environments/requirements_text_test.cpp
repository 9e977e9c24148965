#include "../good.h"
#include "../temporary.h"
#include "core/filesystem.h"
#include "environments/requirements_text.h"
#include "pip/git_logins.h"

#include <gtest/gtest.h>

namespace containerize::environments {

namespace {

TEST(RequirementsText, NamesFilesFromElsewhere) {
    const test::TemporaryDirectory place;
    const auto at = [&](const std::string& name) { return (place / name).string(); };
    ASSERT_TRUE(write_file(at("wheels"), ""));
    const auto text = requirements_text({{.text = "-r more.txt"},
                                         {.text = "--constraint='a b.txt'"},
                                         {.text = "-f wheels"},
                                         {.text = "-f https://host/links"},
                                         {.text = "-e ./project"},
                                         {.text = "six==1.16.0 ; python_version > '3'"}},
                                        place.path());
    EXPECT_EQ(text, "--requirement " + at("more.txt") + "\n--constraint '" + at("a b.txt") +
                        "'\n--find-links " + at("wheels") +
                        "\n-f https://host/links\n-e ./project\nsix==1.16.0 ; python_version > '3'\n");
}

TEST(RequirementsText, CopiesWithoutLoginsOfGit) {
    const test::TemporaryDirectory place;
    fs::create_directory(place / "sub");
    ASSERT_TRUE(write_file(place / "main.txt", "# more\n-r sub/more.txt\nsix\n"));
    ASSERT_TRUE(write_file(place / "sub/more.txt", "a @ git+https://me:pw@host/a.git@v1\n-r ../main2.txt\n"));
    ASSERT_TRUE(write_file(place / "main2.txt", "idna\n"));
    const auto read = test::good(spec::read_requirements(place / "main.txt", place.path()));
    const auto copy = test::good(copy_requirements(read, place / "copies", pip::without_git_logins));
    const auto again = test::good(spec::read_requirements(copy, place.path()));
    std::vector<std::string> requirements;
    for (const auto& line : again.lines)
        if (!line.text.starts_with('-')) requirements.push_back(line.text);
    EXPECT_EQ(requirements, (std::vector<std::string>{"a @ git+https://host/a.git@v1", "idna", "six"}));
    EXPECT_EQ(again.lines.at(0).number, 2U) << "lines keep their numbers";
}

} // namespace

} // namespace containerize::environments

#include "../good.h"
#include "../temporary.h"
#include "core/filesystem.h"
#include "prefix/records.h"

#include <ctime>
#include <map>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::prefix {

namespace {

using test::mode_of;

class RecordsTest : public testing::Test {
protected:
    fs::path input(const std::string& name, const std::string& text, mode_t mode) {
        const auto file = directory.write(name, text);
        EXPECT_EQ(chmod(file.c_str(), mode), 0);
        return file;
    }
    Result<nlohmann::json> keep(const std::vector<fs::path>& files) {
        std::vector<Input> inputs;
        for (const auto& file : files)
            inputs.push_back(test::good(read_input(file)));
        return keep_records(directory / "share",
                            {.inputs = std::move(inputs),
                             .packages = "six==1\n",
                             .lock = {own_lock_name, "{}\n"},
                             .log = log},
                            022);
    }
    std::string kept(const std::string& name) {
        return read_file(directory / "share/inputs" / name).value_or("nothing");
    }

    test::TemporaryDirectory directory;
    fs::path log = directory.write("log", "said\n");
};

} // namespace

TEST_F(RecordsTest, CopiesOfInputsHaveNoSecretsAndNoMarkForALogin) {
    const auto listed =
        test::good(keep({input("r.txt", "-i https://me:pw@host/simple\nsix\n", 0644),
                         input("plain.txt", "six\r\n", 0640), input("own.txt", "ssh://me:pw@h", 0600),
                         input("utf16.txt", std::string("\xFF\xFEh\0:\0/\0/\0a\0@\0b\0", 16), 0644)}));
    EXPECT_EQ(kept("r.txt"), "-i https://host/simple\nsix\n");
    EXPECT_EQ(kept("plain.txt"), "six\r\n");
    EXPECT_EQ(kept("own.txt"), "ssh://me@h");
    EXPECT_EQ(kept("utf16.txt"), "h://b");
    const auto inputs = directory / "share/inputs";
    EXPECT_EQ(mode_of(inputs / "r.txt"), 0644U);
    EXPECT_EQ(mode_of(inputs / "plain.txt"), 0640U);
    EXPECT_EQ(mode_of(inputs / "own.txt"), 0600U);
    EXPECT_EQ(mode_of(directory / "share/containerize.lock"), 0600U) << "as the most private input";
    EXPECT_EQ(listed.at(0).at("kept_as"), "r.txt");
}

TEST_F(RecordsTest, EscapedSecretsAreNotKept) {
    const std::map<std::string, std::string> files = {
        {"slashes.json", R"({"url": "https:\/\/me:first-secret@host\/simple"})"},
        {"colon.toml", R"(url = "https\u003A//me:second-secret@host/simple")"},
        {"password.yml", R"(url: "https://me:third\x2Dsecret@host/simple")"},
        {"lines.toml", "url = \"\"\"https://me:fourth-\\\n   secret@host/simple\"\"\""}};
    std::vector<fs::path> paths;
    for (const auto& [name, text] : files)
        paths.push_back(input(name, text, 0644));
    paths.push_back(input("harmless.json", R"({"url": "https:\/\/host\/simple"})", 0644));
    test::good(keep(paths));
    for (const auto& [name, text] : files)
        EXPECT_EQ(kept(name).find("secret"), std::string::npos) << kept(name);
    EXPECT_EQ(kept("harmless.json"), R"({"url": "https:\/\/host\/simple"})");
}

TEST_F(RecordsTest, InputsAreKeptAsTheyWereRead) {
    const auto file = input("r.txt", "six\n", 0640);
    const auto read = test::good(read_input(file));
    fs::remove(file);
    test::good(
        keep_records(directory / "share", {.inputs = {read}, .packages = "", .lock = {}, .log = log}, 022));
    EXPECT_EQ(kept("r.txt"), "six\n");
    EXPECT_EQ(mode_of(directory / "share/inputs/r.txt"), 0640U);
}

TEST_F(RecordsTest, InputsOfTheSameNameAreToldApart) {
    for (const char* of : {"a", "b", "c"})
        fs::create_directories(directory / of);
    const auto listed =
        test::good(keep({input("1-r.txt", "first", 0644), input("a/r.txt", "of a", 0644),
                         input("b/r.txt", "of b", 0644), input("c/r.txt", "of c", 0644),
                         input("b/1-r.txt", "second", 0644), input("c/2-r.txt", "third", 0644)}));
    std::map<std::string, std::string> contents;
    for (const auto& one : listed)
        contents[one.at("file").get<std::string>().substr(directory.path().native().size())] =
            kept(one.at("kept_as"));
    EXPECT_EQ(contents, (std::map<std::string, std::string>{{"/1-r.txt", "first"},
                                                            {"/a/r.txt", "of a"},
                                                            {"/b/r.txt", "of b"},
                                                            {"/c/r.txt", "of c"},
                                                            {"/b/1-r.txt", "second"},
                                                            {"/c/2-r.txt", "third"}}));
    EXPECT_EQ(listed.at(1).at("kept_as"), "r.txt");
    EXPECT_EQ(listed.at(2).at("kept_as"), "2-r.txt");
}

TEST_F(RecordsTest, ALockIsAsPrivateAsThePreviousOne) {
    const auto previous = directory.write("previous.lock", "x");
    chmod(previous.c_str(), 0640);
    const auto records = Records{
        .inputs = {}, .packages = "", .lock = {own_lock_name, "lock"}, .previous_lock = previous, .log = log};
    test::good(keep_records(directory / "next", records, 022));
    EXPECT_EQ(mode_of(directory / "next/containerize.lock"), 0640U);
}

TEST_F(RecordsTest, LogsOfFailuresAreTheOwners) {
    const auto saved = save_log(log, directory.path());
    ASSERT_FALSE(saved.empty());
    EXPECT_EQ(read_file(saved), "said\n");
    EXPECT_EQ(mode_of(saved), 0600U);
    EXPECT_EQ(mode_of(saved.parent_path()), 0700U);
    fs::path again;
    std::time_t second = 0;
    do { // a log's name has the time in seconds
        second = std::time(nullptr);
        static_cast<void>(save_log(log, directory.path()));
        again = save_log(log, directory.path());
    } while (std::time(nullptr) != second);
    EXPECT_TRUE(again.empty()) << "what is there is not written over";
}

TEST_F(RecordsTest, NoLogGoesWhereOthersCanLook) {
    const auto ours = save_log(log, directory.path()).parent_path();
    fs::remove_all(ours);
    fs::create_directory(ours);
    ASSERT_EQ(chmod(ours.c_str(), 0755), 0);
    EXPECT_TRUE(save_log(log, directory.path()).empty());
    fs::remove_all(ours);
    fs::create_directory(directory / "elsewhere");
    ASSERT_EQ(chmod((directory / "elsewhere").c_str(), 0700), 0);
    fs::create_directory_symlink(directory / "elsewhere", ours);
    EXPECT_TRUE(save_log(log, directory.path()).empty());
    EXPECT_TRUE(fs::is_empty(directory / "elsewhere"));
}

} // namespace containerize::prefix

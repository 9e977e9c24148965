#include "pip/git_logins.h"

#include <gtest/gtest.h>

namespace containerize::pip {

namespace {

spec::Requirements lines(const std::vector<std::string>& texts) {
    spec::Requirements requirements;
    for (const auto& text : texts)
        requirements.lines.push_back({.file = "r.txt", .number = 1, .text = text});
    return requirements;
}

/// The login that git itself uses for a URL.
std::string login_for(const std::string& url, const std::vector<GitLogin>& logins,
                      Environment environment = {}) {
    environment.insert({{"PATH", "/usr/bin:/bin"}, {"HOME", "/nonexistent"}, {"GIT_TERMINAL_PROMPT", "0"}});
    environment.emplace("GIT_ASKPASS", "/bin/false");
    hand_to_git(logins, environment);
    const auto outcome = capture(
        {.argv = {"sh", "-c", "echo url=" + url + " | git credential fill"}, .environment = environment});
    if (!outcome || !outcome->ok()) return "none";
    const auto value = [&](const std::string& name) {
        const auto start = outcome->output.find(name + "=") + name.size() + 1;
        return outcome->output.substr(start, outcome->output.find('\n', start) - start);
    };
    return value("username") + ":" + value("password");
}

TEST(GitLogins, AreTakenOutOfUrls) {
    EXPECT_EQ(without_git_logins("a @ git+https://me:pw@host/a.git@v1#egg=a ; x > '1'"),
              "a @ git+https://host/a.git@v1#egg=a ; x > '1'");
    EXPECT_EQ(without_git_logins("-e git+http://${TOKEN}@host:80/a.git"), "-e git+http://host:80/a.git");
    for (const char* text : {"git+https://host/a.git@v1", "git+ssh://git@host/a.git", "git+file:///a@b",
                             "a @ https://me:pw@host/a.whl", "six==1.16.0"})
        EXPECT_EQ(without_git_logins(text), text);
}

TEST(GitLogins, AreFound) {
    const auto found = git_logins_in(
        lines({"six", "a @ git+https://me:p%40w@host/g/a.git@v1#egg=a", "-e git+https://tok@host/b#egg=b"}));
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].repository, "https://host/g/a.git");
    EXPECT_EQ(found[0].user, "me");
    EXPECT_EQ(found[0].password, "p@w");
    EXPECT_EQ(found[1].repository, "https://host/b");
    EXPECT_EQ(found[1].user, "tok");
    EXPECT_EQ(found[1].password, std::nullopt);
}

TEST(GitLogins, GitFindsThem) {
    const std::vector<GitLogin> logins = {{"https://host/g/a.git", "me", "p w'\"$x"},
                                          {"https://host/g/b.git", "you", "other"},
                                          {"https://token/c", "tok", std::nullopt}};
    EXPECT_EQ(login_for("https://host/g/a.git", logins), "me:p w'\"$x");
    EXPECT_EQ(login_for("https://host/g/b.git", logins), "you:other");
    EXPECT_EQ(login_for("https://host/g/submodule.git", logins), "me:p w'\"$x");
    EXPECT_EQ(login_for("https://token/c", logins), "tok:");
    EXPECT_EQ(login_for("https://elsewhere/g/a.git", logins), "none");
}

TEST(GitLogins, UsersOwnSettingsStay) {
    const Environment own = {
        {"GIT_CONFIG_COUNT", "1"},
        {"GIT_CONFIG_KEY_0", "credential.helper"},
        {"GIT_CONFIG_VALUE_0", "!own() { echo password=known; echo username=own; }; own"}};
    EXPECT_EQ(login_for("https://elsewhere/x", {{"https://host/a", "me", "pw"}}, own), "own:known");
    EXPECT_EQ(login_for("https://host/a", {{"https://host/a", "me", "pw"}}, own), "me:pw");
}

} // namespace

} // namespace containerize::pip

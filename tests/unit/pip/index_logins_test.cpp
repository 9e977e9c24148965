#include "good.h"
#include "pip/index_logins.h"

#include <gtest/gtest.h>

namespace containerize::pip {

namespace {

using Logins = std::map<std::string, std::string>;

Logins found_in(const std::vector<std::string>& texts) {
    Logins found;
    for (const auto& [host, login] : index_logins_in(texts))
        found[host] = login.user + ":" + login.password;
    return found;
}

TEST(IndexLogins, AreFoundByHost) {
    EXPECT_EQ(
        found_in({"-i https://me:p%40w@host:8443/simple", "--find-links=http://you:x+/y@links/page",
                  "https://a:b@one/x https://c:d@two/y", "six @ https://e:f@files/six.whl",
                  "--extra-index-url https://me:p%40w@host:8443/other"}),
        (Logins{
            {"host", "me:p@w"}, {"links", "you:x+/y"}, {"one", "a:b"}, {"two", "c:d"}, {"files", "e:f"}}));
}

TEST(IndexLogins, OnlyThoseThatANetrcFileCanSay) {
    EXPECT_EQ(found_in({"https://me:one@host/a", "https://me:two@host/b", "https://token@userless/",
                        "https://me:a%20b@blank/", "https://me:a%22@quote/", "https://me:a%5Cb@backslash/",
                        "https://me:pw@[::1]:80/", "git+https://me:pw@git/a.git", "ftp://me:pw@ftp/",
                        "https://none/a@b"}),
              Logins());
}

TEST(IndexLogins, AreTakenOut) {
    const auto logins = index_logins_in({"https://me:pw@host/a"});
    EXPECT_EQ(without_index_logins("-i https://me:pw@host:80/a https://${A}:${B}@host/b", logins),
              "-i https://host:80/a https://host/b");
    for (const char* text : {"-i https://me:pw@other/a", "git+https://me:pw@host/a", "six==1.16.0"})
        EXPECT_EQ(without_index_logins(text, logins), text);
}

TEST(IndexLogins, PythonFindsThemInTheNetrcFile) {
    const auto logins = index_logins_in({"https://me:p!w@host/", "https://you:$x%25@second/"});
    const auto text = netrc_with("machine host login mine password old\nmachine own login I password mine\n"
                                 "default login d password e\nmacdef m\n cd /",
                                 logins);
    const auto outcome = test::good(capture({.argv = {"python3", "-c", R"(
import netrc, sys, tempfile
with tempfile.NamedTemporaryFile("w") as file:
    file.write(sys.argv[1])
    file.flush()
    read = netrc.netrc(file.name)
print(*(":".join(read.authenticators(host)[::2]) for host in ("host", "second", "own", "elsewhere"))))",
                                                      text}}));
    EXPECT_EQ(outcome.output, "me:p!w you:$x% I:mine d:e\n") << text;
}

TEST(IndexLogins, PipsConfigurationIsOverruled) {
    EXPECT_EQ(
        index_settings("global.index-url='https://a/'\n:env:.index-url='https://b/'\n"
                       "global.find-links='\\nhttps://c/\\nhttps://d/'\ndownload.index-url='https://e'\n"
                       "global.timeout='1'\n"),
        (Environment{{"PIP_INDEX_URL", "https://b/"}, {"PIP_FIND_LINKS", "https://c/ https://d/"}}));
}

} // namespace

} // namespace containerize::pip

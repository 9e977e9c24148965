#include "pip/download_settings.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace containerize::pip {

namespace {

DownloadSettings settings_for(const std::string& configuration, const std::vector<std::string>& lines = {},
                              const Environment& uv = {}) {
    spec::Requirements requirements;
    for (const auto& line : lines)
        requirements.lines.push_back({.file = "r.txt", .number = 1, .text = line});
    return download_settings(settings_of_install(configuration), requirements, uv, !uv.empty());
}

std::string logins(const DownloadSettings& settings) {
    std::string text;
    for (const auto& one : settings.http.logins)
        text += one.url + " " + one.user + ":" + one.password + "\n";
    return text;
}

TEST(DownloadSettings, HaveTheLoginsOfIndexes) {
    const auto settings =
        settings_for("global.index-url='https://u:p%40@host/simple'\n"
                     "global.extra-index-url='https://token@more:8443/simple'\n",
                     {"--find-links https://a:b@links/x.html", "six", "r @ git+https://g:h@code/r"});
    EXPECT_EQ(logins(settings), "https://host u:p@\nhttps://links a:b\nhttps://more:8443 token:\n");
    EXPECT_EQ(settings.obstacle, "");
}

TEST(DownloadSettings, HaveTheProxyAndTheCertificates) {
    const auto settings = settings_for("global.proxy='http://proxy:3128'\nglobal.cert='/ca.pem'\n");
    EXPECT_EQ(settings.http.proxies.at("all"), "http://proxy:3128");
    EXPECT_EQ(settings.http.ca, "/ca.pem");
}

TEST(DownloadSettings, HaveTheLoginsOfUvsIndexes) {
    EXPECT_EQ(logins(settings_for("", {},
                                  {{"UV_INDEX", "my-index=https://host/simple https://u:p@other/simple"},
                                   {"UV_INDEX_MY_INDEX_USERNAME", "me"},
                                   {"UV_INDEX_MY_INDEX_PASSWORD", "secret"}})),
              "https://host me:secret\nhttps://other u:p\n");
    EXPECT_NE(settings_for("", {}, {{"UV_INDEX_X_PASSWORD", "secret"}}).obstacle, "");
    EXPECT_EQ(settings_for("", {}, {{"UV_INDEX_STRATEGY", "unsafe-best-match"}}).obstacle, "");
    EXPECT_EQ(settings_for("", {}, {{"UV_INDEX_URL", "https://host/simple"}}).obstacle, "");
}

TEST(DownloadSettings, NameWhatOnlyPipOrUvCanFollow) {
    for (const auto* setting : {"trusted-host='host'", "client-cert='/c.pem'", "keyring-provider='import'"})
        EXPECT_NE(settings_for(std::string("global.") + setting + "\n").obstacle, "") << setting;
    EXPECT_EQ(settings_for("global.keyring-provider='auto'\n").obstacle, "");
    EXPECT_NE(settings_for("", {"--trusted-host host"}).obstacle, "");
    EXPECT_NE(
        settings_for("", {"--extra-index-url https://a:b@h/x", "--find-links https://c:d@h/y"}).obstacle, "");
    EXPECT_NE(settings_for("", {}, {{"UV_KEYRING_PROVIDER", "subprocess"}}).obstacle, "");
}

} // namespace

} // namespace containerize::pip

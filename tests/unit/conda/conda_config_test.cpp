#include "../temporary.h"
#include "conda/conda_config.h"

#include <gtest/gtest.h>

namespace containerize::conda {

namespace {

using test::TemporaryDirectory;

class CondaConfig : public testing::Test {
protected:
    CondaConfig() {
        environment["HOME"] = (directory / "home").string();
        fs::create_directories(directory / "home");
    }
    [[nodiscard]] Config read() const {
        auto config = read_config(environment, directory.path());
        if (!config) throw std::runtime_error(to_string(config.error()));
        return *config;
    }
    /// The error message, without the name of the temporary directory.
    [[nodiscard]] std::string mistake() const {
        const auto config = read_config(environment, directory.path());
        if (config) return "no error";
        EXPECT_EQ(config.error().fault, Fault::input);
        auto text = to_string(config.error());
        const auto name = directory.path().string() + "/";
        for (auto at = text.find(name); at != std::string::npos; at = text.find(name))
            text.erase(at, name.size());
        return text;
    }
    void condarc(std::string_view content) const { directory.write("home/.condarc", content); }

    TemporaryDirectory directory;
    Environment environment;
};

std::vector<std::string> texts(const std::vector<Located>& list) {
    std::vector<std::string> result;
    for (const auto& item : list)
        result.push_back(item.text);
    return result;
}

using Texts = std::vector<std::string>;

} // namespace

TEST_F(CondaConfig, NothingThere) {
    const auto config = read();
    EXPECT_TRUE(config.channels.empty());
    EXPECT_EQ(config.channel_alias, "https://conda.anaconda.org");
    EXPECT_EQ(config.channel_priority, ChannelPriority::flexible);
    EXPECT_TRUE(config.http.verify_tls);
    EXPECT_TRUE(config.files.empty());
    EXPECT_EQ(config.local_repodata_ttl, 1);
}

TEST_F(CondaConfig, LaterFilesWinAndTheirItemsComeFirst) {
    directory.write("etc/conda/.condarc",
                    "channels: [site, common]\nchannel_priority: strict\noffline: true\n"
                    "custom_channels: {one: https://a/, two: https://b}\n");
    directory.write("etc/conda/condarc.d/20.yml", "channel_alias: https://late.example/\n");
    directory.write("etc/conda/condarc.d/10.yml", "channel_alias: https://early.example\n");
    directory.write("etc/conda/condarc.d/not-read.txt", "channel_alias: [\n");
    directory.write("home/.config/conda/.condarc", "channels:\n  - config\n");
    directory.write("home/.condarc", "channels:\n  - home\n  - common\nchannel_priority: flexible\n"
                                     "custom_channels: {two: https://c}\n");
    directory.write("home/.mambarc", "channels: mamba\n");
    directory.write("rc", "channels: [named]\n");
    environment["CONDARC"] = (directory / "rc").string();
    environment["CONDA_CHANNELS"] = "first, second";
    const auto config = read();
    EXPECT_EQ(texts(config.channels),
              (Texts{"first", "second", "named", "mamba", "home", "common", "config", "site"}));
    EXPECT_EQ(config.channels[0].where, "CONDA_CHANNELS");
    EXPECT_EQ(config.channels[4].where, (directory / "home/.condarc:2").string());
    EXPECT_EQ(config.channel_priority, ChannelPriority::flexible);
    EXPECT_EQ(config.channel_alias, "https://late.example");
    EXPECT_TRUE(config.offline);
    EXPECT_EQ(config.custom_channels.at("one"), "https://a/");
    EXPECT_EQ(config.custom_channels.at("two"), "https://c");
    EXPECT_EQ(texts(config.site_channels), (Texts{"site", "common"}));
    EXPECT_EQ(config.files.size(), 7U);
}

TEST_F(CondaConfig, PrefixesAreRead) {
    for (const char* place : {"root", "mamba", "other/base", "env", "xdg/conda"})
        directory.write(fs::path(place) / ".condarc", std::string("channels: ['") + place + "']\n");
    const auto at = [&](const char* name) { return (directory / name).string(); };
    environment["CONDA_ROOT"] = at("root");
    environment["MAMBA_ROOT_PREFIX"] = at("mamba");
    environment["CONDA_EXE"] = at("other/base/bin/conda");
    environment["CONDA_PREFIX"] = at("env");
    environment["XDG_CONFIG_HOME"] = at("xdg");
    EXPECT_EQ(texts(read().channels), (Texts{"env", "xdg/conda", "root", "mamba", "other/base"}));
}

TEST_F(CondaConfig, FlagsInComments) {
    directory.write("etc/conda/.condarc", "channels:\n  - last  #!bottom\n  - first  #!top\n  - site\n"
                                          "channel_alias: https://fixed.example  #!final\n"
                                          "default_channels: #!final\n  - https://mirror.example/main\n");
    condarc("channels: [home]\nchannel_alias: https://mine.example\ndefault_channels: "
            "[https://mine.example/x]\n");
    const auto config = read();
    EXPECT_EQ(texts(config.channels), (Texts{"first", "home", "site", "last"}));
    EXPECT_EQ(config.channel_alias, "https://fixed.example");
    EXPECT_EQ(texts(config.default_channels), (Texts{"https://mirror.example/main"}));
}

TEST_F(CondaConfig, AllKeys) {
    directory.write("home/ca.pem", "");
    condarc("channel_alias: conda.example.org/\n"
            "custom_multichannels:\n  defaults: [https://a/main, https://a/r]\n  local: single\n"
            "mirrored_channels:\n  conda-forge: [https://m1/conda-forge, https://m2/conda-forge]\n"
            "channel_priority: disabled\n"
            "proxy_servers:\n  http: http://me:pw@proxy:3128\n  https: "
            "http://${PROXY_HOST}:$PORT/$UNSET${UNSET}\n  ftp:\n"
            "ssl_verify: ~/ca.pem\nclient_ssl_cert: ~/ca.pem\nclient_ssl_cert_key: ~/ca.pem\n"
            "pkgs_dirs: [~/pkgs, relative]\npinned_packages: [numpy 1.26.*, python=3.11]\n"
            "local_repodata_ttl: 600\nremote_read_timeout_secs: 120.0\nremote_connect_timeout_secs: 9.15\n"
            "remote_max_retries: 7\nfetch_threads: 3\n"
            "allowlist_channels: [conda-forge]\ndenylist_channels: [bad]\n"
            "show_channel_urls: true\nauto_activate_base: false\nsome: {nested: [thing]}\n");
    environment["PROXY_HOST"] = "p.example";
    environment["PORT"] = "8080";
    const auto config = read();
    EXPECT_EQ(config.channel_alias, "https://conda.example.org");
    EXPECT_EQ(config.custom_multichannels.at("defaults"), (Texts{"https://a/main", "https://a/r"}));
    EXPECT_EQ(config.custom_multichannels.at("local"), (Texts{"single"}));
    EXPECT_EQ(config.mirrored_channels.at("conda-forge").at(1), "https://m2/conda-forge");
    EXPECT_EQ(config.channel_priority, ChannelPriority::disabled);
    EXPECT_EQ(config.http.proxies.at("http"), "http://me:pw@proxy:3128");
    EXPECT_EQ(config.http.proxies.at("https"), "http://p.example:8080/$UNSET${UNSET}");
    EXPECT_FALSE(config.http.proxies.contains("ftp"));
    const auto pem = directory / "home/ca.pem";
    EXPECT_EQ(config.http.ca, pem);
    EXPECT_EQ(config.http.client_certificate, pem);
    EXPECT_EQ(config.http.client_key, pem);
    EXPECT_EQ(config.pkgs_dirs, std::vector{directory / "home/pkgs"});
    EXPECT_EQ(texts(config.pinned_packages), (Texts{"numpy 1.26.*", "python=3.11"}));
    EXPECT_EQ(config.local_repodata_ttl, 600);
    EXPECT_EQ(config.http.stall_timeout, std::chrono::seconds(120));
    EXPECT_EQ(config.http.connect_timeout, std::chrono::milliseconds(9150));
    EXPECT_EQ(config.http.retries, 7U);
    EXPECT_EQ(config.http.parallel, 3U);
    EXPECT_EQ(config.allowed_channels, Texts{"conda-forge"});
    EXPECT_EQ(config.denied_channels, Texts{"bad"});
}

TEST_F(CondaConfig, VariablesCount) {
    condarc("ssl_verify: false\nchannel_priority: strict\n");
    environment["CONDA_SSL_VERIFY"] = "true";
    environment["CONDA_CHANNEL_PRIORITY"] = "false";
    environment["CONDA_CHANNEL_ALIAS"] = "https://x.example";
    environment["CONDA_PKGS_DIRS"] = "/a,/b";
    environment["CONDA_OFFLINE"] = "yes";
    environment["CONDA_PINNED_PACKAGES"] = "a>=1,<2&b";
    environment["CONDA_LOCAL_REPODATA_TTL"] = "0";
    const auto config = read();
    EXPECT_TRUE(config.http.verify_tls);
    EXPECT_EQ(config.channel_priority, ChannelPriority::disabled);
    EXPECT_EQ(config.channel_alias, "https://x.example");
    EXPECT_EQ(config.pkgs_dirs, (std::vector<fs::path>{"/a", "/b"}));
    EXPECT_TRUE(config.offline);
    EXPECT_EQ(texts(config.pinned_packages), (Texts{"a>=1,<2", "b"}));
    EXPECT_EQ(config.local_repodata_ttl, 0);
    environment["CONDA_SSL_VERIFY"] = "0";
    EXPECT_FALSE(read().http.verify_tls);
}

TEST_F(CondaConfig, WhatDecidesOnPackages) {
    condarc("disallowed_packages: [numpy 2.3.0, badone]\ncreate_default_packages:\n  - ipython\n"
            "add_pip_as_python_dependency: false\n");
    auto config = read();
    EXPECT_EQ(texts(config.disallowed_packages), (Texts{"numpy 2.3.0", "badone"}));
    EXPECT_EQ(texts(config.default_packages), Texts{"ipython"});
    EXPECT_TRUE(config.default_packages.front().where.ends_with("home/.condarc:3"));
    EXPECT_FALSE(config.pip_with_python);
    environment["CONDA_DISALLOWED_PACKAGES"] = "a>=1,<2&b";
    environment["CONDA_ADD_PIP_AS_PYTHON_DEPENDENCY"] = "1";
    config = read();
    EXPECT_EQ(texts(config.disallowed_packages), (Texts{"a>=1,<2", "b", "numpy 2.3.0", "badone"}));
    EXPECT_TRUE(config.pip_with_python);
    EXPECT_TRUE(Config().pip_with_python);
}

TEST_F(CondaConfig, WhatIsNotSupportedIsWarnedOf) {
    condarc("channels: [a]\nuse_only_tar_bz2: true\nchangeps1: false\n");
    environment["CONDA_SUBDIR"] = "linux-aarch64";
    testing::internal::CaptureStderr();
    EXPECT_EQ(read().channels.size(), 1U);
    const auto shown = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(shown.contains("home/.condarc:2: `use_only_tar_bz2` is not supported")) << shown;
    EXPECT_TRUE(shown.contains("CONDA_SUBDIR: `subdir` is not supported")) << shown;
    EXPECT_FALSE(shown.contains("changeps1"));
    EXPECT_FALSE(shown.contains("channels"));
}

TEST_F(CondaConfig, Mistakes) {
    const std::string hint = "\nCorrect it, or ignore conda's configuration with --no-config.";
    const std::string file_hint = "\nCorrect the file, or ignore conda's configuration with --no-config.";
    const std::pair<const char*, std::string> cases[] = {
        {"channels:\n  - a\n bad: [\n", "home/.condarc:3: invalid YAML: end of map not found" + file_hint},
        {"proxy_servers: [\n  https: user:secret@proxy\n",
         "home/.condarc:3: invalid YAML: end of sequence flow not found" + file_hint},
        {"- a\n- b\n",
         "home/.condarc:1: the configuration must be a mapping of `key: value` lines" + file_hint},
        {"\nchannels: {a: b}\n", "home/.condarc:2: channels must be a list" + hint},
        {"channels:\n  - a\n  - [b]\n", "home/.condarc:3: an item of channels must be a string" + hint},
        {"channel_alias: [a]\n", "home/.condarc:1: channel_alias must be a single value" + hint},
        {"channel_priority: best\n",
         "home/.condarc:1: channel_priority must be strict, flexible or disabled: it is 'best'" + hint},
        {"proxy_servers: http://x\n",
         "home/.condarc:1: proxy_servers must be a mapping of names to values" + hint},
        {"proxy_servers:\n  http: [a]\n",
         "home/.condarc:2: http in proxy_servers must be a single value" + hint},
        {"offline: maybe\n", "home/.condarc:1: offline must be true or false: it is 'maybe'" + hint},
        {"remote_max_retries: -1\n",
         "home/.condarc:1: remote_max_retries must be a number from 0 to 100: it is '-1'" + hint},
        {"ssl_verify: /no/such.pem\n",
         "home/.condarc:1: the file that ssl_verify names does not exist: it is '/no/such.pem'" + hint},
    };
    for (const auto& [content, expected] : cases) {
        condarc(content);
        EXPECT_EQ(mistake(), expected);
    }
    condarc("channels: [" + std::string(500'000, ',') + "]");
    EXPECT_EQ(mistake(), "home/.condarc: this file has too many entries: the limit is 50000" + file_hint);
    condarc("");
    EXPECT_EQ(mistake(), "no error");
    condarc("channels:\n");
    EXPECT_EQ(mistake(), "no error");
    environment["CONDA_OFFLINE"] = "perhaps";
    EXPECT_EQ(mistake(), "CONDA_OFFLINE: offline must be true or false: it is 'perhaps'" + hint);
}

TEST_F(CondaConfig, Logins) {
    directory.write("home/.mamba/auth/authentication.json",
                    R"({"conda.anaconda.org": {"type": "CondaToken", "token": "to-ken"},
                        "repo.example/x": {"type": "BasicHTTPAuthentication", "user": "me", "password": "czNjcmV0"},
                        "other.example": {"type": "BearerToken", "token": "bear"},
                        "odd.example": {"type": "New"}})");
    directory.write("home/.rattler/credentials.json",
                    R"({"a.example": {"CondaToken": "t2"}, "b.example": {"BearerToken": "b2"},
                        "c.example": {"BasicHTTP": {"username": "u", "password": "p"}}})");
    directory.write("home/.local/share/binstar/https%3A%2F%2Fapi.anaconda.org.token", "mine\n");
    directory.write(
        "home/.continuum/anaconda-client/tokens/https%3A%2F%2Frepo.anaconda.cloud%2Frepo%2F.token", "paid");
    environment["RATTLER_AUTH_FILE"] = (directory / "home/auth.json").string();
    EXPECT_FALSE(read().tokens.contains("named.example")) << "as long as there is no such file";
    directory.write("home/auth.json",
                    R"({"named.example": {"CondaToken": "t3"}, "a.example": {"CondaToken": "t4"},
                        "*.prefix.dev": {"BearerToken": "pfx"},
                        "o.example": {"OAuth": {"access_token": "oa", "refresh_token": "r", "expires_at": 99999999999}},
                        "old.example": {"OAuth": {"access_token": "ob", "expires_at": 1}}})");
    auto config = read();
    EXPECT_EQ(config.tokens.at("named.example"), "t3");
    EXPECT_EQ(config.tokens.at("a.example"), "t4") << "the file that is named counts more";
    ASSERT_EQ(config.http.logins.size(), 6U);
    EXPECT_EQ(config.http.logins[0].url, "*.prefix.dev");
    EXPECT_EQ(config.http.logins[0].bearer, "pfx");
    EXPECT_EQ(config.http.logins[1].bearer, "oa");
    environment.erase("RATTLER_AUTH_FILE");
    config = read();
    EXPECT_EQ(config.tokens.at("conda.anaconda.org"), "to-ken");
    EXPECT_EQ(config.tokens.at("a.example"), "t2");
    EXPECT_EQ(config.tokens.at("repo.anaconda.cloud/repo"), "paid");
    ASSERT_EQ(config.http.logins.size(), 4U);
    EXPECT_EQ(config.http.logins[0].bearer, "bear");
    EXPECT_EQ(config.http.logins[1].url, "repo.example/x");
    EXPECT_EQ(config.http.logins[1].user, "me");
    EXPECT_EQ(config.http.logins[1].password, "s3cret");
    EXPECT_EQ(config.http.logins[3].password, "p");
    fs::remove(directory / "home/.mamba/auth/authentication.json");
    EXPECT_EQ(read().tokens.at("conda.anaconda.org"), "mine");
    condarc("add_anaconda_token: false\n");
    EXPECT_FALSE(read().tokens.contains("conda.anaconda.org"));

    directory.write("home/.mamba/auth/authentication.json", "{\"h\": {\"token\": \"secret\"");
    EXPECT_EQ(mistake(), "home/.mamba/auth/authentication.json: the file with logins is not valid "
                         "JSON\nCorrect the file, or ignore conda's configuration with --no-config.");
}

} // namespace containerize::conda

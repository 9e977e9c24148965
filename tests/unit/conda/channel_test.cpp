#include "../good.h"
#include "../temporary.h"
#include "conda/channel.h"

#include <gtest/gtest.h>

namespace containerize::conda {

namespace {

using Texts = std::vector<std::string>;

Channel one(const std::string& text, const Config& config = Config()) {
    const auto channels = resolve_channel({text, "env.yml:3"}, config);
    if (!channels) throw std::runtime_error(to_string(channels.error()));
    EXPECT_EQ(channels->size(), 1U) << text;
    return channels->front();
}

std::string mistake(const std::string& text, const Config& config = Config()) {
    const auto channels = resolve_channel({text, "env.yml:3"}, config);
    return channels ? "no error" : to_string(channels.error());
}

Texts urls(const std::vector<Channel>& channels) {
    Texts result;
    for (const auto& channel : channels)
        result.push_back(channel.url);
    return result;
}

std::vector<Located> located(const Texts& list, const std::string& file = "env.yml") {
    std::vector<Located> result;
    for (const auto& text : list)
        result.push_back({text, file + ":" + std::to_string(result.size() + 1)});
    return result;
}

Texts choose(const Texts& asked, const Config& config = Config(), bool allow = false) {
    const auto choice = choose_channels(located(asked), {}, config, allow);
    if (!choice) return {to_string(choice.error())};
    auto result = urls(choice->channels);
    for (const auto& note : choice->notes)
        result.push_back(note);
    return result;
}

const std::string forge = "https://conda.anaconda.org/conda-forge";
const std::string terms = "its terms of service (anaconda.com/legal) require a paid licence for "
                          "organisations of 200 people or more";

} // namespace

TEST(Channel, Texts) {
    struct Case {
        const char *text, *name, *url;
    };
    const Case cases[] = {
        {"conda-forge", "conda-forge", "https://conda.anaconda.org/conda-forge"},
        {"conda-forge/linux-64", "conda-forge", "https://conda.anaconda.org/conda-forge"},
        {"dask/label/dev", "dask/label/dev", "https://conda.anaconda.org/dask/label/dev"},
        {"nvidia/label/cuda-12.1.0", "nvidia/label/cuda-12.1.0",
         "https://conda.anaconda.org/nvidia/label/cuda-12.1.0"},
        {"https://conda.anaconda.org/conda-forge/", "conda-forge", "https://conda.anaconda.org/conda-forge"},
        {"https://conda.anaconda.org/conda-forge/noarch", "conda-forge",
         "https://conda.anaconda.org/conda-forge"},
        {"http://conda.anaconda.org/gurobi", "gurobi", "https://conda.anaconda.org/gurobi"},
        {"https://repo.prefix.dev/conda-forge", "https://repo.prefix.dev/conda-forge",
         "https://repo.prefix.dev/conda-forge"},
        {"https://example.org:8080/a/b/linux-64/", "https://example.org:8080/a/b",
         "https://example.org:8080/a/b"},
        {"pkgs/main", "pkgs/main", "https://repo.anaconda.com/pkgs/main"},
        {"https://repo.anaconda.com/pkgs/r/noarch", "pkgs/r", "https://repo.anaconda.com/pkgs/r"},
        {"file:///srv/channel/linux-64", "file:///srv/channel", "file:///srv/channel"},
        {"/srv/a channel", "file:///srv/a%20channel", "file:///srv/a%20channel"},
        {"/srv/channel/noarch/", "file:///srv/channel", "file:///srv/channel"},
    };
    for (const auto& [text, name, url] : cases) {
        const auto channel = one(text);
        EXPECT_EQ(channel.name, name) << text;
        EXPECT_EQ(channel.url, url) << text;
        EXPECT_EQ(channel.mirrors, Texts{url}) << text;
    }
    EXPECT_EQ(one("./local").url, "file://" + (fs::current_path() / "local").string());
    EXPECT_EQ(one("..").url, "file://" + fs::current_path().parent_path().string());
    setenv("HOME", "/home/me", 1);
    EXPECT_EQ(one("~/channel").url, "file:///home/me/channel");
}

TEST(Channel, Mistakes) {
    const std::string hint = "\nGive a name (conda-forge), a URL (https://...) or a path (/srv/channel).";
    const std::string elsewhere =
        "\nGive an https address of the channel or of a mirror, or copy it to a directory and "
        "give its path.";
    EXPECT_EQ(mistake("conda forge"), "env.yml:3: 'conda forge' is not a channel" + hint);
    EXPECT_EQ(mistake(""), "env.yml:3: '' is not a channel" + hint);
    EXPECT_EQ(mistake("C:\\channel"), "env.yml:3: 'C:\\channel' is not a channel" + hint);
    EXPECT_EQ(mistake("a/../b"), "env.yml:3: 'a/../b' is not a channel" + hint);
    EXPECT_EQ(mistake("s3://me:secret@bucket/x"),
              "env.yml:3: the channel 's3://bucket/x' cannot be used: an address of S3 has no login\nSet "
              "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead.");
    EXPECT_EQ(mistake("oci://ghcr.io/channel-mirrors/conda-forge"),
              "env.yml:3: the channel 'oci://ghcr.io/channel-mirrors/conda-forge' cannot be used: its URL is "
              "not an "
              "http, https, s3 or file URL" +
                  elsewhere);
}

TEST(Channel, CredentialsAreForFetchingAlone) {
    const auto channel = one("https://me:pw@example.org/private");
    EXPECT_EQ(channel.url, "https://example.org/private");
    EXPECT_EQ(channel.name, "https://example.org/private");
    EXPECT_EQ(channel.mirrors, Texts{"https://me:pw@example.org/private"});
    const auto token = one("https://conda.anaconda.org/t/to-ken/private/linux-64");
    EXPECT_EQ(token.url, "https://conda.anaconda.org/private");
    EXPECT_EQ(token.name, "private");
    EXPECT_EQ(token.mirrors, Texts{"https://conda.anaconda.org/t/to-ken/private"});

    Config config;
    config.tokens = {
        {"conda.anaconda.org", "all"}, {"conda.anaconda.org/private", "own"}, {"example.org/x", "x"}};
    EXPECT_EQ(one("conda-forge", config).mirrors, Texts{"https://conda.anaconda.org/t/all/conda-forge"});
    EXPECT_EQ(one("private", config).mirrors, Texts{"https://conda.anaconda.org/t/own/private"});
    EXPECT_EQ(one("private", config).url, "https://conda.anaconda.org/private");
    EXPECT_EQ(one("https://example.org/xy", config).mirrors, Texts{"https://example.org/xy"});
    EXPECT_EQ(one("https://conda.anaconda.org/t/mine/private", config).mirrors,
              Texts{"https://conda.anaconda.org/t/mine/private"});
    config.channel_alias = "https://conda.example.org/t/alias-token/get";
    EXPECT_EQ(one("team", config).url, "https://conda.example.org/get/team");
    EXPECT_EQ(one("team", config).name, "team");
}

TEST(Channel, BucketsOfS3) {
    Config config;
    EXPECT_EQ(one("s3://bucket/channel", config).mirrors,
              Texts{"https://s3.us-east-1.amazonaws.com/bucket/channel"});
    read_s3({{"AWS_REGION", "eu-north-1"},
             {"AWS_ENDPOINT_URL", "http://s3.example.org:9000/"},
             {"AWS_ACCESS_KEY_ID", "key"},
             {"AWS_SECRET_ACCESS_KEY", "secret"}},
            config);
    const auto channel = one("s3://bucket/a b+c/linux-64", config);
    EXPECT_EQ(channel.url, "s3://bucket/a b+c");
    EXPECT_EQ(channel.mirrors, Texts{"http://s3.example.org:9000/bucket/a%20b%2Bc"});
    EXPECT_EQ(download_urls("s3://bucket/x/noarch/a-1+b-0.conda", {}, config),
              Texts{"http://s3.example.org:9000/bucket/x/noarch/a-1%2Bb-0.conda"});
    ASSERT_EQ(config.http.logins.size(), 1U);
    EXPECT_EQ(config.http.logins[0].url, "http://s3.example.org:9000");
    EXPECT_EQ(config.http.logins[0].signature, "aws:amz:eu-north-1:s3");
    EXPECT_EQ(test::error_of(resolve_channel({"s3://", "env.yml:3"}, config)).why, "it names no bucket");
}

TEST(Channel, WrongSettingsOfS3MatterForS3Alone) {
    const std::pair<const char*, const char*> wrong[] = {{"AWS_ENDPOINT_URL", "s3.example.org"},
                                                         {"AWS_ENDPOINT_URL_S3", "ftp://s3"},
                                                         {"AWS_ENDPOINT_URL", "https://me:pw@s3"},
                                                         {"AWS_DEFAULT_REGION", "a.b/c"}};
    for (const auto& [name, value] : wrong) {
        Config config;
        read_s3({{name, value}}, config);
        EXPECT_EQ(one("team", config).name, "team");
        EXPECT_EQ(test::error_of(resolve_channel({"s3://bucket/x", {}}, config)).where, name);
    }
    Config half;
    read_s3({{"AWS_ACCESS_KEY_ID", "key"}}, half);
    EXPECT_EQ(test::error_of(resolve_channel({"s3://bucket/x", {}}, half)).where, "AWS_SECRET_ACCESS_KEY");
    EXPECT_TRUE(half.http.logins.empty());
}

TEST(Channel, MirrorsOfAPrefixAreForFetchingAlone) {
    Config config;
    config.url_mirrors = {{.prefix = "https://conda.anaconda.org", .url = "https://m1/conda"},
                          {.prefix = "https://conda.anaconda.org/bioconda", .url = "http://m2/bio"},
                          {.prefix = "https://conda.anaconda.org", .url = "https://m3"}};
    config.tokens = {{"m1", "secret"}};
    const auto forge = one("conda-forge", config);
    EXPECT_EQ(forge.url, "https://conda.anaconda.org/conda-forge");
    EXPECT_EQ(forge.name, "conda-forge");
    EXPECT_EQ(forge.mirrors, (Texts{"https://m1/t/secret/conda/conda-forge", "https://m3/conda-forge",
                                    "https://conda.anaconda.org/conda-forge"}));
    EXPECT_EQ(one("bioconda", config).mirrors,
              (Texts{"http://m2/bio", "https://conda.anaconda.org/bioconda"}));
    EXPECT_EQ(one("bioconda2", config).mirrors.front(), "https://m1/t/secret/conda/bioconda2");
    // A login is only for the server that it was written for.
    EXPECT_EQ(one("https://me:pw@conda.anaconda.org/bioconda/label/x", config).mirrors,
              (Texts{"http://m2/bio/label/x", "https://me:pw@conda.anaconda.org/bioconda/label/x"}));
    EXPECT_EQ(one("https://example.org/x", config).mirrors, Texts{"https://example.org/x"});
    EXPECT_EQ(download_urls("https://conda.anaconda.org/bioconda/noarch/a-1-0.conda", {}, config),
              (Texts{"http://m2/bio/noarch/a-1-0.conda",
                     "https://conda.anaconda.org/bioconda/noarch/a-1-0.conda"}));
    // conda's own mirrors can have mirrors, too.
    config.mirrored_channels = {{"team", {"https://x/team", "https://conda.anaconda.org/bioconda"}}};
    EXPECT_EQ(one("team", config).url, "https://x/team");
    EXPECT_EQ(one("team", config).mirrors,
              (Texts{"https://x/team", "http://m2/bio", "https://conda.anaconda.org/bioconda"}));
}

TEST(Channel, Configuration) {
    Config config;
    config.channel_alias = "https://mirror.example/conda";
    config.custom_channels = {{"team", "https://conda.team.example/pub/"}, {"team/deep", "file:///srv"}};
    config.custom_multichannels = {{"all", {"conda-forge", "team"}}};
    config.mirrored_channels = {
        {"bioconda", {"oci://x/y", "https://m1/bioconda", "https://me:pw@m2/bioconda"}},
        {"conda-forge", {"https://m1/cf", "https://mirror.example/conda/conda-forge"}}};
    EXPECT_EQ(one("bioconda/label/x", config).url, "https://mirror.example/conda/bioconda/label/x");
    EXPECT_EQ(one("team", config).url, "https://conda.team.example/pub/team");
    EXPECT_EQ(one("team/label/dev", config).url, "https://conda.team.example/pub/team/label/dev");
    EXPECT_EQ(one("team/deep/er", config).url, "file:///srv/team/deep/er");
    EXPECT_EQ(one("https://conda.team.example/pub/team", config).name, "team");
    const auto bioconda = one("bioconda", config);
    EXPECT_EQ(bioconda.url, "https://m1/bioconda");
    EXPECT_EQ(bioconda.name, "bioconda");
    EXPECT_EQ(bioconda.mirrors, (Texts{"https://m1/bioconda", "https://me:pw@m2/bioconda"}));
    const auto mirrored = one("conda-forge", config);
    EXPECT_EQ(mirrored.url, "https://mirror.example/conda/conda-forge");
    EXPECT_EQ(mirrored.mirrors.front(), "https://m1/cf");
    EXPECT_EQ(urls(*resolve_channel({"all", ""}, config)),
              (Texts{"https://mirror.example/conda/conda-forge", "https://conda.team.example/pub/team"}));
    // A site can make these names refer to its own mirror of Anaconda's channels.
    config.default_channels =
        located({"https://mirror.example/pkgs/main", "https://mirror.example/pkgs/r"}, "rc");
    EXPECT_EQ(urls(*resolve_channel({"defaults", ""}, config)),
              (Texts{"https://mirror.example/pkgs/main", "https://mirror.example/pkgs/r"}));
    EXPECT_EQ(one("pkgs/main", config).url, "https://mirror.example/pkgs/main");
    EXPECT_EQ(one("pkgs/pro", config).url, "https://repo.anaconda.com/pkgs/pro");
}

TEST(Channel, OfMatchSpecs) {
    const auto config = Config();
    EXPECT_TRUE(is_channel("conda-forge", forge, config));
    EXPECT_TRUE(is_channel("https://conda.anaconda.org/conda-forge", forge, config));
    EXPECT_TRUE(is_channel("http://conda.anaconda.org/conda-forge/linux-64", forge, config));
    EXPECT_FALSE(is_channel("bioconda", forge, config));
    EXPECT_FALSE(is_channel("conda-forge/label/dev", forge, config));
    EXPECT_TRUE(is_channel("pkgs/main", "https://repo.anaconda.com/pkgs/main", config));
    EXPECT_TRUE(is_channel("defaults", "https://repo.anaconda.com/pkgs/r", config));
    EXPECT_FALSE(is_channel("not a channel", forge, config));
}

TEST(Channel, AnacondasTerms) {
    for (const char* text :
         {"pkgs/main", "pkgs/r", "anaconda", "main", "r", "https://repo.anaconda.com/pkgs/free",
          "https://repo.continuum.io/pkgs/main", "https://conda.anaconda.org/main/linux-64"})
        EXPECT_TRUE(has_anaconda_terms(one(text))) << text;
    for (const char* text : {"conda-forge", "bioconda", "mainly", "https://mirror.example/pkgs/main",
                             "rapidsai", "https://conda.anaconda.org/robots", "file:///srv/pkgs/main"})
        EXPECT_FALSE(has_anaconda_terms(one(text))) << text;
}

TEST(ChooseChannels, AsGiven) {
    EXPECT_EQ(choose({}), Texts{forge});
    EXPECT_EQ(choose({"nodefaults"}), Texts{forge});
    EXPECT_EQ(choose({"pytorch", "conda-forge", "nodefaults", forge}),
              (Texts{"https://conda.anaconda.org/pytorch", forge}));
    Config config;
    config.channels = located({"bioconda", "conda-forge"}, ".condarc");
    EXPECT_EQ(choose({}, config), (Texts{"https://conda.anaconda.org/bioconda", forge}));
    EXPECT_EQ(choose({"conda-forge"}, config), (Texts{forge, "https://conda.anaconda.org/bioconda"}));
    EXPECT_EQ(choose({"conda-forge", "nodefaults"}, config), Texts{forge});
    EXPECT_EQ(choose({"conda forge"})[0].substr(0, 41), "env.yml:1: 'conda forge' is not a channel");
}

TEST(ChooseChannels, DefaultsNeedConsent) {
    EXPECT_EQ(choose({"defaults", "conda-forge"}),
              (Texts{forge, "env.yml:1: the channel 'defaults' is ignored: " + terms +
                                ". --allow-defaults allows it."}));
    EXPECT_EQ(choose({"conda-forge", "https://repo.anaconda.com/pkgs/main"}),
              (Texts{forge, "env.yml:2: the channel 'https://repo.anaconda.com/pkgs/main' is ignored: " +
                                terms + ". --allow-defaults allows it."}));
    EXPECT_EQ(choose({"defaults"}),
              Texts{"env.yml:1: 'defaults', the only given channel, is a channel of Anaconda: " + terms +
                    "\nUse conda-forge instead, which has nearly all of its packages. If Anaconda's terms "
                    "permit your use,\nallow the channel with --allow-defaults."});
    EXPECT_EQ(choose({"defaults", "conda-forge"}, {}, true),
              (Texts{"https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r", forge,
                     "packages of pkgs/main, pkgs/r come from Anaconda: " + terms}));
    // Conda itself writes `defaults` into the user's file, so it is left out without a note.
    Config config;
    config.channels = located({"conda-forge", "defaults"}, ".condarc");
    EXPECT_EQ(choose({}, config), Texts{forge});
}

TEST(ChooseChannels, TheSiteMayConsent) {
    Config config;
    config.site_channels = located({"defaults"}, "/etc/conda/.condarc");
    EXPECT_EQ(choose({"pkgs/main"}, config), (Texts{"https://repo.anaconda.com/pkgs/main",
                                                    "packages of pkgs/main come from Anaconda: " + terms}));
    // The consent is for these channels only.
    EXPECT_EQ(choose({"anaconda", "conda-forge"}, config).front(), forge);
    // Where `defaults` means a mirror of the site, no consent is needed.
    config = {};
    config.default_channels = located({"https://mirror.example/main"}, "/etc/conda/.condarc");
    EXPECT_EQ(choose({"defaults"}, config), Texts{"https://mirror.example/main"});
}

TEST(ChooseChannels, OfPackages) {
    const auto config = Config();
    const auto choice = test::good(
        choose_channels(located({"conda-forge"}), located({"nvidia", "conda-forge"}), config, false));
    EXPECT_EQ(urls(choice.channels), (Texts{forge, "https://conda.anaconda.org/nvidia"}));
    const auto refused = test::error_of(
        choose_channels(located({"conda-forge"}), {{"pkgs/main", "env.yml:7"}}, config, false));
    EXPECT_EQ(refused.fault, Fault::input);
    EXPECT_EQ(to_string(refused).substr(0, 90),
              "env.yml:7: 'pkgs/main', which a package specification names, is a channel of Anaconda: its");
    EXPECT_TRUE(choose_channels(located({"conda-forge"}), {{"pkgs/main", "env.yml:7"}}, config, true));
}

TEST(ChooseChannels, Lists) {
    Config config;
    config.denied_channels = {"bad"};
    EXPECT_EQ(choose({"conda-forge", "https://conda.anaconda.org/bad"}, config),
              Texts{"env.yml:2: the channel bad is not allowed here: it is in denylist_channels of conda's "
                    "configuration\nUse another channel."});
    config = {};
    config.allowed_channels = {"conda-forge", "bioconda"};
    EXPECT_EQ(choose({"nvidia"}, config),
              Texts{"env.yml:1: the channel nvidia is not allowed here: it is not in allowlist_channels of "
                    "conda's configuration\nAllowed channels: conda-forge, bioconda."});
    EXPECT_EQ(choose({"bioconda"}, config), Texts{"https://conda.anaconda.org/bioconda"});
}

TEST(ChooseChannels, OfLists) {
    Config config;
    const std::vector<Located> listed = {{"https://conda.anaconda.org/conda-forge", "list.txt"},
                                         {"https://repo.anaconda.com/pkgs/main", "list.txt"}};
    const auto notes = test::good(check_listed_channels(listed, config));
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_TRUE(notes.front().starts_with("packages of pkgs/main come from Anaconda: its terms"));
    EXPECT_EQ(check_listed_channels({listed.front()}, config).value(), Texts{});
    config.denied_channels = {"conda-forge"};
    EXPECT_EQ(to_string(check_listed_channels(listed, config).error()),
              "list.txt: the channel conda-forge is not allowed here: it is in denylist_channels of conda's "
              "configuration\nUse another channel.");
}

TEST(Channel, DownloadUrls) {
    Config config;
    config.tokens = {{"tokens.example", "to-ken"}};
    const std::vector<Channel> channels = {
        {.name = "x", .url = "https://a/x", .mirrors = {"https://m/x", "https://u:p@a/x"}}};
    EXPECT_EQ(download_urls("https://a/x/noarch/p-1-0.conda", channels, config),
              (Texts{"https://m/x/noarch/p-1-0.conda", "https://u:p@a/x/noarch/p-1-0.conda"}));
    EXPECT_EQ(download_urls("https://a/xy/noarch/p-1-0.conda", channels, config),
              Texts{"https://a/xy/noarch/p-1-0.conda"});
    EXPECT_EQ(download_urls("https://tokens.example/c/noarch/p-1-0.conda", channels, config),
              Texts{"https://tokens.example/t/to-ken/c/noarch/p-1-0.conda"});
    // A lock file made elsewhere is used on a site that only has a mirror.
    config.mirrored_channels = {{"conda-forge", {"https://inside/cf"}}};
    EXPECT_EQ(download_urls(forge + "/noarch/p-1-0.conda", {}, config),
              Texts{"https://inside/cf/noarch/p-1-0.conda"});
    EXPECT_EQ(download_urls("https://inside/cf/noarch/p-1-0.conda", {}, config),
              Texts{"https://inside/cf/noarch/p-1-0.conda"});
}

} // namespace containerize::conda

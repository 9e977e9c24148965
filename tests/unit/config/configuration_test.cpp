#include "config/configuration.h"
#include "good.h"
#include "temporary.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::config {

namespace {

/// A machine with /etc, a site's configuration file and a user's home.
class ConfigTest : public testing::Test {
protected:
    void machine(std::string_view text) { write("etc/containerize/config.yaml", text); }
    void site(std::string_view text) {
        write("site.yaml", text);
        environment["CONTAINERIZE_CONFIG"] = (place / "site.yaml").string();
    }
    void user(std::string_view text) { write("home/.config/containerize/config.yaml", text); }
    void tykky(std::string_view text) {
        write("tykky.yaml", text);
        environment["CW_GLOBAL_YAML"] = (place / "tykky.yaml").string();
    }

    [[nodiscard]] Result<Configuration> read() const {
        return Configuration::read(environment, place.path());
    }
    [[nodiscard]] Configuration good() const {
        auto read_one = read();
        EXPECT_TRUE(read_one) << to_string(read_one.error());
        return std::move(read_one).value_or(Configuration());
    }
    [[nodiscard]] std::string where(const std::string& name, int line) const {
        return (place / name).string() + ":" + std::to_string(line);
    }

    test::TemporaryDirectory place;
    Environment environment = {{"HOME", (place / "home").string()}, {"USER", "me"}};

private:
    void write(const fs::path& name, std::string_view text) const {
        fs::permissions(place.write(name, text), fs::perms::owner_read | fs::perms::owner_write);
    }
};

std::vector<std::string> values(const std::vector<Setting>& settings) {
    std::vector<std::string> texts;
    for (const auto& one : settings)
        texts.push_back((one.name.empty() ? "" : one.name + "=") + one.value);
    return texts;
}
using Texts = std::vector<std::string>;

TEST_F(ConfigTest, WithoutFilesThereAreDefaults) {
    const auto configuration = good();
    EXPECT_EQ(configuration.text(Key::compression), "zstd:3");
    EXPECT_EQ(configuration.text(Key::block_size), "128K");
    EXPECT_EQ(configuration.text(Key::installer), "auto");
    EXPECT_EQ(configuration.text(Key::base), "host");
    EXPECT_TRUE(configuration.flag(Key::conda_config));
    EXPECT_EQ(configuration.number(Key::jobs), 0U);
    EXPECT_EQ(configuration[Key::compression].settings.front().where, "default");
    EXPECT_TRUE(configuration.list(Key::channels).empty());
    EXPECT_TRUE(configuration.files().empty());
    EXPECT_EQ(configuration.directory(Key::staging, environment)->string(), "");
}

TEST_F(ConfigTest, EmptyFilesSayNothing) {
    machine("");
    site("defaults:\nforce:\n");
    user("# nothing yet\n");
    EXPECT_EQ(good().files().size(), 3U);
}

TEST_F(ConfigTest, LaterDefaultsWin) {
    machine("defaults:\n  compression: lz4\n  jobs: 2\n  block_size: 64K\n");
    site("defaults:\n  compression: zstd:5\n  jobs: 3\n");
    user("defaults:\n  compression: none\n");
    const auto configuration = good();
    EXPECT_EQ(configuration.text(Key::compression), "none");
    EXPECT_EQ(configuration[Key::compression].settings.front().where,
              where("home/.config/containerize/config.yaml", 2));
    EXPECT_EQ(configuration.number(Key::jobs), 3U);
    EXPECT_EQ(configuration[Key::jobs].settings.front().where, where("site.yaml", 3));
    EXPECT_EQ(configuration.text(Key::block_size), "64K");
}

TEST_F(ConfigTest, ForceIsFinal) {
    machine("force:\n  compression: lz4\ndefaults:\n  compression: zstd:5\n  jobs: 2\n");
    site("force:\n  compression: none\n  jobs: 4\n");
    user("defaults:\n  compression: zstd:9\n");
    const auto configuration = good();
    EXPECT_EQ(configuration.text(Key::compression), "lz4");
    EXPECT_TRUE(configuration[Key::compression].forced);
    EXPECT_EQ(configuration[Key::compression].forced_where, where("etc/containerize/config.yaml", 2));
    EXPECT_EQ(configuration.number(Key::jobs), 4U);
    ASSERT_EQ(configuration.notes().size(), 2U);
    EXPECT_TRUE(configuration.notes().front().contains(where("site.yaml", 2)));
}

TEST_F(ConfigTest, ListsAreExtended) {
    machine("appends:\n  channels: [last]\nprepends:\n  channels: [second]\n");
    site("defaults:\n  channels:\n    - given\n    - other\n");
    user("prepends:\n  channels: [first]\nappends:\n  channels: [very-last]\n");
    const auto configuration = good();
    EXPECT_EQ(values(configuration.list(Key::channels)),
              (Texts{"first", "second", "given", "other", "last", "very-last"}));
    EXPECT_EQ(configuration.list(Key::channels)[3].where, where("site.yaml", 4));
}

TEST_F(ConfigTest, ForcedListsAreNotExtended) {
    machine("appends:\n  channels: [early]\n");
    site("force:\n  channels: [mirror]\n");
    user("appends:\n  channels: [mine]\ndefaults:\n  channels: [other]\n");
    EXPECT_EQ(values(good().list(Key::channels)), Texts{"mirror"});
    site("force:\n  channels: []\n");
    EXPECT_TRUE(good().list(Key::channels).empty());
    EXPECT_TRUE(good()[Key::channels].forced);
}

TEST_F(ConfigTest, MapsAreMergedByName) {
    machine("defaults:\n  environment:\n    A: 1\n    B: 1\nforce:\n  environment:\n    C: 1\n");
    user("defaults:\n  environment:\n    B: two words\n    C: 2\n    D: ''\n");
    const auto configuration = good();
    EXPECT_EQ(values(configuration[Key::environment].settings), (Texts{"A=1", "B=two words", "C=1", "D="}));
    EXPECT_TRUE(configuration[Key::environment].settings[2].forced);
    EXPECT_FALSE(configuration[Key::environment].settings[1].forced);
    EXPECT_EQ(configuration.notes().size(), 1U);
}

TEST_F(ConfigTest, ReadsEveryKey) {
    machine("defaults:\n  prefix: /envs/$USER\n  channels: [conda-forge, 'https://x.org/c', /srv/channel]\n"
            "  mirrors: ['https://a.org=http://m.org/a']\n"
            "  conda_config: No\n  cache: ~/cache\n  cache_limit: 50G\n  cache_age: none\n  "
            "site_caches: [/srv/cache, ~/site]\n  exec_environments: ~/exec\n  exec_limit: 3G\n"
            "  staging: /local/${USER}\n  base: host\n"
            "  compression: lz4\n  block_size: 1M\n  jobs: 4\n  max_jobs: 16\n  python: conda:3.12\n  "
            "installer: uv\n"
            "  wrapper_paths: [opt/bin]\n  binds: [/a, '/a:/b', '/a:/b:ro']\n"
            "  host_profiles: [slurm, /srv/site.yaml]\n  environment: {X: y}\n"
            "  engine: singularity\n  auto_base: docker://debian:12\n  umask: 027\n  bases: /bases/$USER\n  "
            "base_stores: [~/site, /srv/bases]\n  base_limit: 8\n"
            "  registries: ['docker.io=https://m.org/hub', 'r.org:80=http://r.org:80']\n");
    const auto configuration = good();
    for (const auto& key : all_keys())
        EXPECT_FALSE(configuration.list(key.key).empty()) << key.name;
    EXPECT_FALSE(configuration.flag(Key::conda_config));
    EXPECT_EQ(configuration.directory(Key::staging, environment)->string(), "/local/me");
    EXPECT_EQ(configuration.directory(Key::prefix, environment)->string(), "/envs/me");
    EXPECT_EQ(configuration.directory(Key::cache, environment)->string(), environment["HOME"] + "/cache");
    EXPECT_EQ(parse_umask(configuration.text(Key::umask)), 027U);
    EXPECT_EQ(configuration.directories(Key::base_stores, environment),
              (std::vector<fs::path>{environment["HOME"] + "/site", "/srv/bases"}));
}

TEST_F(ConfigTest, UnsetVariablesAreErrorsWhereTheyAreUsed) {
    user("defaults:\n  staging: $NO_SUCH/x\n  cache: $RELATIVE/x\n");
    environment["RELATIVE"] = "not/absolute";
    const auto configuration = good();
    const auto staging = test::error_of(configuration.directory(Key::staging, environment));
    EXPECT_EQ(staging.where, where("home/.config/containerize/config.yaml", 2));
    EXPECT_TRUE(staging.what.contains("NO_SUCH is not set"));
    EXPECT_EQ(staging.fault, Fault::input);
    EXPECT_EQ(test::error_of(configuration.directory(Key::cache, environment)).where,
              where("home/.config/containerize/config.yaml", 3));
}

struct Mistake {
    const char* text;
    int line;
    const char* says;
};

class MistakeTest : public ConfigTest, public testing::WithParamInterface<Mistake> {};

TEST_P(MistakeTest, IsReportedWithItsLine) {
    const auto& mistake = GetParam();
    user(mistake.text);
    const auto error = test::error_of(read());
    EXPECT_EQ(error.where, where("home/.config/containerize/config.yaml", mistake.line));
    EXPECT_TRUE(to_string(error).contains(mistake.says)) << to_string(error);
    EXPECT_TRUE(error.why.contains(std::to_string(mistake.line) + " | ")) << to_string(error);
    EXPECT_EQ(error.fault, Fault::input);
}

INSTANTIATE_TEST_SUITE_P(
    All, MistakeTest,
    testing::Values(
        Mistake{"- a list\n", 1, "must be a mapping with sections"},
        Mistake{"\ndefault:\n  jobs: 1\n", 2, "Did you mean defaults?"},
        Mistake{"jobs: 1\n", 1, "Put it below `defaults:`"}, Mistake{"defaults: 3\n", 1, "must be a mapping"},
        Mistake{"defaults:\n  stagging:\n    - x\n", 2, "Did you mean staging?"},
        Mistake{"defaults:\n  jobs: 1\n  jobs: 2\n", 3, "is defined twice"},
        Mistake{"defaults:\n  jobs:\n", 2, "has no value"}, Mistake{"defaults:\n  jobs: many\n", 2, "'many'"},
        Mistake{"defaults:\n  jobs: 0\n", 2, "from 1 to 1024"},
        Mistake{"defaults:\n  max_jobs: 2.5\n", 2, "'2.5'"},
        Mistake{"defaults:\n  jobs: [1]\n", 2, "must be a single value"},
        Mistake{"defaults:\n  channels: x\n", 2, "must be a list"},
        Mistake{"defaults:\n  channels:\n    - a\n    - [b]\n", 4, "must be a single value"},
        Mistake{"defaults:\n  channels: ['a b']\n", 2, "invalid channel"},
        Mistake{"defaults:\n  channels: [./here]\n", 2, "invalid channel"},
        Mistake{"defaults:\n  conda_config: maybe\n", 2, "not true or false"},
        Mistake{"defaults:\n  mirrors: ['https://a.org']\n", 2, "invalid mirror"},
        Mistake{"defaults:\n  mirrors: ['https://a.org=https://me:pw@m.org']\n", 2, "invalid mirror"},
        Mistake{"defaults:\n  mirrors: ['file:///a=https://m.org']\n", 2, "invalid mirror"},
        Mistake{"force:\n  staging: tmp\n", 2, "not an absolute path"},
        Mistake{"force:\n  staging: ${TMPDIR:-/tmp}\n", 2, "invalid variable"},
        Mistake{"force:\n  cache: /a/$/b\n", 2, "invalid variable"},
        Mistake{"force:\n  cache: /a/${b\n", 2, "invalid variable"},
        Mistake{"force:\n  base: two words\n", 2, "invalid base"},
        Mistake{"force:\n  compression: zstd:23\n", 2, "invalid compression"},
        Mistake{"force:\n  block_size: 2M\n", 2, "invalid block size"},
        Mistake{"force:\n  installer: conda\n", 2, "conda"},
        Mistake{"force:\n  wrapper_paths: [../bin]\n", 2, "not a path below the prefix"},
        Mistake{"force:\n  wrapper_paths: [/usr/bin]\n", 2, "not a path below the prefix"},
        Mistake{"force:\n  binds: [relative]\n", 2, "invalid bind: 'relative'"},
        Mistake{"force:\n  host_profiles: [a/b]\n", 2, "invalid host profile: 'a/b'"},
        Mistake{"force:\n  binds: ['/a:/b:frob']\n", 2, "invalid bind: '/a:/b:frob'"},
        Mistake{"force:\n  engine: docker\n", 2, "unknown engine"},
        Mistake{"force:\n  stage: disk\n", 2, "invalid stage setting"},
        Mistake{"force:\n  environment: [A]\n", 2, "must be a mapping"},
        Mistake{"force:\n  environment:\n    A-B: 1\n", 3, "not a valid variable name"},
        Mistake{"force:\n  environment:\n    A: [1]\n", 3, "must be a single value"},
        Mistake{"force:\n  umask: 8\n", 2, "invalid umask"},
        Mistake{"force:\n  umask: '0700'\n", 2, "invalid umask"},
        Mistake{"force:\n  prefix: /x\n", 2, "cannot be forced"},
        Mistake{"appends:\n  jobs: 3\n", 2, "not a list, so it cannot be extended"},
        Mistake{"prepends:\n  environment: {A: 1}\n", 2, "not a list, so it cannot be extended"},
        Mistake{"defaults:\n\tjobs: 1\n", 2, "with spaces"},
        Mistake{"defaults:\n  environment: {A: \"\\0\"}\n", 2, "NUL"}));

TEST_F(ConfigTest, CheckTellsAllMistakes) {
    user("defaults:\n  jobs: x\n  stagging: /tmp\nforced:\n  jobs: 1\n");
    const auto mistakes = check_file(place / "home/.config/containerize/config.yaml");
    ASSERT_EQ(mistakes.size(), 3U);
    EXPECT_TRUE(mistakes[0].where.ends_with(":2"));
    EXPECT_TRUE(mistakes[1].where.ends_with(":3"));
    EXPECT_TRUE(mistakes[2].where.ends_with(":4"));
    EXPECT_EQ(check_file(place / "missing").size(), 1U);
}

TEST_F(ConfigTest, AFileOfManyMistakesTakesTimeInProportion) {
    // For each mistake the message has the line number, and suggests the most similar setting.
    std::string text = "defaults:\n";
    constexpr std::size_t count = 20'000;
    for (std::size_t i = 0; i < count; ++i)
        text += " a" + std::to_string(i) + ":\n";
    user(text);
    const auto mistakes = check_file(place / "home/.config/containerize/config.yaml");
    ASSERT_EQ(mistakes.size(), count);
    EXPECT_TRUE(mistakes.back().where.ends_with(":" + std::to_string(count + 1)));
    EXPECT_TRUE(mistakes.back().why.contains("20001 |  a19999:")) << mistakes.back().why;
}

TEST_F(ConfigTest, NamedFilesMustExist) {
    environment["CONTAINERIZE_CONFIG"] = "/no/such.yaml";
    const auto refused = test::error_of(read());
    EXPECT_EQ(refused.where, "/no/such.yaml");
    EXPECT_TRUE(refused.hint.contains("CONTAINERIZE_CONFIG"));
    environment["CONTAINERIZE_CONFIG"] = "";
    EXPECT_TRUE(read());
    environment["CW_GLOBAL_YAML"] = "/no/such.yaml";
    EXPECT_FALSE(read());
}

TEST_F(ConfigTest, XdgNamesTheUsersFile) {
    user("defaults:\n  jobs: 2\n");
    place.write("xdg/containerize/config.yaml", "defaults:\n  jobs: 3\n");
    environment["XDG_CONFIG_HOME"] = (place / "xdg").string();
    chmod((place / "xdg/containerize/config.yaml").c_str(), 0644);
    EXPECT_EQ(good().number(Key::jobs), 3U);
}

TEST_F(ConfigTest, WhatOthersCouldHaveWrittenIsRefused) {
    site("defaults:\n  jobs: 2\n");
    const auto file = place / "site.yaml";
    const auto expect_refused = [&](const fs::path& by) {
        const auto configuration = read();
        if (configuration) FAIL() << by;
        EXPECT_EQ(configuration.error().where, file.string());
        EXPECT_TRUE(configuration.error().hint.contains("chmod go-w " + by.string()));
        EXPECT_EQ(configuration.error().fault, Fault::input);
    };
    ASSERT_EQ(chmod(file.c_str(), 0646), 0);
    expect_refused(file);
    ASSERT_EQ(chmod(file.c_str(), 0644), 0);
    EXPECT_TRUE(read());
    ASSERT_EQ(chmod(place.path().c_str(), 0777), 0);
    expect_refused(place.path());
    ASSERT_EQ(chmod(place.path().c_str(), 0755), 0);
    // The machine's own configuration is under root's control, so its permissions are not checked.
    machine("defaults:\n  jobs: 3\n");
    ASSERT_EQ(chmod((place / "etc/containerize/config.yaml").c_str(), 0666), 0);
    EXPECT_TRUE(read());
}

TEST_F(ConfigTest, FilesOfOtherUsersAreRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
    site("defaults:\n  jobs: 2\n");
    const auto file = place / "site.yaml";
    ASSERT_EQ(chown(file.c_str(), 12345, 12345), 0);
    EXPECT_TRUE(test::error_of(read()).why.contains("another user"));
    // Root's group may write, if only root can write to the directory.
    ASSERT_EQ(chown(file.c_str(), 0, 12345), 0);
    ASSERT_EQ(chmod(file.c_str(), 0664), 0);
    EXPECT_TRUE(read());
}

TEST_F(ConfigTest, ReadsTykkysFiles) {
    user("defaults:\n  jobs: 2\n  staging: /elsewhere\n");
    tykky("defaults:\n  log_level: 2\n  installation_prefix: $PWD\n  container_src: auto\n  num_cpus: 8\n"
          "  isolate: no\nforce:\n  build_tmpdir_base: /tmp/$USER\n  max_num_cpus: 16\n"
          "  installation_prefix: /x\nappends:\nprepends:\n  mount_points: [/a]\nother: 1\n");
    environment["PWD"] = "/here";
    const auto configuration = good();
    EXPECT_EQ(configuration.directory(Key::staging, environment)->string(), "/tmp/me");
    EXPECT_TRUE(configuration[Key::staging].forced);
    EXPECT_EQ(configuration[Key::staging].settings.front().where, where("tykky.yaml", 8));
    EXPECT_EQ(configuration.number(Key::jobs), 8U);
    EXPECT_FALSE(configuration[Key::jobs].forced);
    EXPECT_EQ(configuration.number(Key::max_jobs), 16U);
    EXPECT_EQ(configuration.directory(Key::prefix, environment)->string(), "/here");
    EXPECT_EQ(configuration[Key::base].settings.front().where, where("tykky.yaml", 4));
    std::string notes;
    for (const auto& note : configuration.notes())
        notes += note + "\n";
    for (const char* meaningless : {"log_level", "isolate", "mount_points", "installation_prefix", "other"})
        EXPECT_TRUE(notes.contains("`" + std::string(meaningless) + ":` of tykky has no effect here"))
            << notes;
}

TEST_F(ConfigTest, TykkysKeysMayBeTwiceButNotWrong) {
    tykky("defaults:\n  num_cpus: 8\n  num_cpus: 9\n  container_src: docker://rocky\n");
    EXPECT_EQ(good().number(Key::jobs), 9U);
    EXPECT_EQ(good()[Key::base].settings.front().where, "default");
    tykky("defaults:\n  num_cpus: few\n");
    EXPECT_EQ(test::error_of(read()).where, where("tykky.yaml", 2));
}

TEST(Sizes, HaveUnitsOfPowersOf1024) {
    EXPECT_EQ(test::good(parse_size("0")), 0U);
    EXPECT_EQ(test::good(parse_size("1000")), 1000U);
    EXPECT_EQ(test::good(parse_size("3K")), 3072U);
    EXPECT_EQ(test::good(parse_size("500M")), 500ULL << 20U);
    EXPECT_EQ(test::good(parse_size("10G")), 10ULL << 30U);
    EXPECT_EQ(test::good(parse_size("16777215T")), 16777215ULL << 40U);
    for (const char* text :
         {"", "G", "10g", "-1", "1.5G", "10 G", "10GB", "16777216T", "18446744073709551616"})
        EXPECT_EQ(test::error_of(parse_size(text)).what, "invalid size: '" + std::string(text) + "'");
}

TEST(Limits, CanBeNone) {
    EXPECT_EQ(test::good(parse_limit("50G")), 50ULL << 30U);
    EXPECT_EQ(test::good(parse_limit("none")), std::nullopt);
    EXPECT_EQ(test::error_of(parse_limit("some")).what, "invalid size: 'some'");
    EXPECT_EQ(test::good(parse_age("1d")), std::chrono::days(1));
    EXPECT_EQ(test::good(parse_age("36500d")), std::chrono::days(36500));
    EXPECT_EQ(test::good(parse_age("none")), std::nullopt);
    for (const char* text : {"", "d", "0d", "-1d", "90", "90 d", "90D", "1.5d", "36501d", "12h"})
        EXPECT_EQ(test::error_of(parse_age(text)).what, "invalid age: '" + std::string(text) + "'");
}

} // namespace

} // namespace containerize::config

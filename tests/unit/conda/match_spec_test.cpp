#include "../good.h"
#include "../temporary.h"
#include "conda/match_spec.h"
#include "core/filesystem.h"
#include "real_lists.h"

#include <tuple>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace containerize::conda {
namespace {

Version version_of(std::string_view text) {
    auto version = Version::parse(text);
    EXPECT_TRUE(version) << text << ": " << to_string(version.error());
    return version ? *version : *Version::parse("0");
}

TEST(Version, AreOrderedAsCondaOrdersThem) {
    // Each is older than the next; the order is the one in conda's documentation, with additions.
    const std::vector<std::string> ascending = {
        "0.4",      "0.4.1.rc",   "0.4.1",    "0.5a1",      "0.5b3",   "0.5C1",     "0.5",    "0.9.6",
        "0.960923", "1.0",        "1.1dev1",  "1.1_",       "1.1a1",   "1.1.0dev1", "1.1.a1", "1.1.0rc1",
        "1.1.0",    "1.1.0post1", "1.1post1", "1996.07.12", "1!0.4.1", "1!3.1.1.6", "2!0.4.1"};
    for (std::size_t i = 0; i + 1 < ascending.size(); ++i) {
        const auto& one = ascending[i];
        const auto& next = ascending[i + 1];
        if (one == "1.1dev1" || one == "1.1_" || one == "1.1a1" || one == "1.1.0post1")
            continue; // these pairs are not compared
        EXPECT_LT(version_of(one), version_of(next)) << one << " " << next;
    }
    for (const auto& [one, other] : {std::pair{"0.4", "0.4.0"},
                                     {"0.4.1.rc", "0.4.1.RC"},
                                     {"1.1.dev1", "1.1.0dev1"},
                                     {"1.1.0post1", "1.1.post1"},
                                     {"1.0", "1"},
                                     {"1-0", "1_0"},
                                     {"1.0+x.0", "1.0+x"}})
        EXPECT_EQ(version_of(one), version_of(other)) << one << " " << other;
    for (const auto& [older, newer] : {std::pair{"1.0.1a", "1.0.1b"},
                                       {"1.0.1_", "1.0.1a"},
                                       {"1.0", "1.0+1"},
                                       {"1.0+1", "1.0+2"},
                                       {"9", "10"},
                                       {"1.a", "1.0"}})
        EXPECT_LT(version_of(older), version_of(newer)) << older << " " << newer;
}

TEST(Version, WhatIsNoneIsRefused) {
    for (const char* text :
         {"", "1..2", "1.", "1!2!3", "a!1", "1+2+3", "1 2", "3.0.0_-1", "5.4+", "ü", "1/2", "!1"})
        EXPECT_FALSE(Version::parse(text)) << text;
}

struct Selection {
    const char* spec;
    std::vector<const char*> takes, leaves;
};

TEST(VersionSpec, SelectAsCondaDoes) {
    const Selection table[] = {
        {"1.26", {"1.26", "1.26.0"}, {"1.26.4", "1.2"}},
        {"=1.26", {"1.26", "1.26.4", "1.26rc1"}, {"1.260", "1.27", "1.2"}},
        {"==1.26.4", {"1.26.4", "1.26.4.0"}, {"1.26.40", "1.26"}},
        {"1.26.*", {"1.26", "1.26.4"}, {"1.27", "1.260"}},
        {"1.26*", {"1.26", "1.26.4"}, {"1.27"}},
        {">=1.20,<2|3.*", {"1.20", "1.26.4", "3.1"}, {"1.19", "2.0", "4"}},
        {">=1.20,(<1.22|>=1.24)", {"1.21", "1.25"}, {"1.23", "1.19"}},
        {"!=1.8.*", {"1.7", "1.9"}, {"1.8", "1.8.3"}},
        {"!=1.8", {"1.8.1", "1.9"}, {"1.8", "1.8.0"}},
        {"~=1.4.2", {"1.4.2", "1.4.9"}, {"1.4.1", "1.5"}},
        {"~=1.4", {"1.4", "1.9"}, {"1.3", "2.0"}},
        {">=1.8.*", {"1.8", "1.9"}, {"1.7"}},
        {"==1.8.*", {"1.8", "1.8.4"}, {"1.9"}},
        {"*", {"0", "1!2", "3.4"}, {}},
        {">1.0dev", {"1.0", "1.0a1"}, {"1.0dev", "0.9"}},
        {"1.*.4", {"1.2.4", "1.26.4"}, {"1.2.5"}},
        {"^1\\.[0-9]$", {"1.2"}, {"1.26", "2.1"}},
        {"<13.0a0", {"12.9"}, {"13.0a0", "13.0"}},
        {">=2021.1,<2022", {"2021.4"}, {"2022.0"}},
    };
    for (const auto& [text, takes, leaves] : table) {
        const auto spec = VersionSpec::parse(text);
        ASSERT_TRUE(spec) << text << ": " << to_string(spec.error());
        for (const char* version : takes)
            EXPECT_TRUE(spec->matches(version_of(version))) << text << " takes " << version;
        for (const char* version : leaves)
            EXPECT_FALSE(spec->matches(version_of(version))) << text << " leaves " << version;
    }
}

TEST(VersionSpec, WhatIsNoneSaysWhy) {
    EXPECT_FALSE(Version::parse("1.20000000000000000000"));
    EXPECT_LT(version_of("1.9999999999999999998"), version_of("1.09999999999999999999"));
    for (const auto& [text, why] : {std::pair{"", "it is empty"},
                                    {"^1\x1b$", "it contains a control character"},
                                    {"1.*?2", "it contains a character that is not allowed in versions"},
                                    {">=1.*.2", "it contains a character that is not allowed in versions"},
                                    {">=", "there is no version after '>='"},
                                    {"1.2,,3", "a condition is empty"},
                                    {"(1.2", "a ')' is missing"},
                                    {"1.2)", "unexpected ')'"},
                                    {"~=1.*", "'~=' cannot be used with '*'"},
                                    {"~=1", "at least two parts"},
                                    {">=1<2", "separate conditions with ','"},
                                    {"1..2", "a part between two dots is empty"}}) {
        const auto spec = VersionSpec::parse(text);
        ASSERT_FALSE(spec) << text;
        EXPECT_TRUE(to_string(spec.error()).contains(why)) << to_string(spec.error());
    }
}

TEST(VersionSpec, RegularExpressionsThatCouldTakeAllMemoryAreRefused) {
    EXPECT_TRUE(StringMatch::parse("^py3[0-9]+(cuda|cpu)?\\.[a-z]*_\\{0$"));
    for (const std::string text :
         {"^((a{1,30000}){1,30000}){1,30000}$", "^((((a{1,99}){1,99}){1,99}){1,99})$", "^(a*)*\\1$",
          "^[0-9]++++++++++++++++++++++++++$"}) {
        const auto pattern = StringMatch::parse(text);
        ASSERT_FALSE(pattern) << text;
        EXPECT_EQ(pattern.error().fault, Fault::input);
        EXPECT_FALSE(VersionSpec::parse(text)) << text;
        EXPECT_FALSE(parse_match_spec("a * " + text)) << text;
    }
    EXPECT_FALSE(parse_match_spec("^(a*)*\\1$"));
}

TEST(VersionSpec, RegularExpressionsAreMatchedWithoutTryingAllWays) {
    std::string nested = "a";
    for (int depth = 0; depth < 100; ++depth)
        nested = "(" + nested + "+)";
    const auto pattern = test::good(StringMatch::parse("^" + nested + "$"));
    EXPECT_TRUE(pattern.matches(std::string(300, 'a')));
    EXPECT_FALSE(pattern.matches(std::string(300, 'a') + "b"));
}

PackageRecord record(std::string name, std::string version, std::string build, std::uint64_t number = 0) {
    PackageRecord made;
    made.name = std::move(name);
    made.version = std::move(version);
    made.build = std::move(build);
    made.build_number = number;
    made.subdir = "linux-64";
    return made;
}

TEST(MatchSpec, EveryDocumentedFormSelectsWhatItShould) {
    const auto numpy = record("numpy", "1.26.4", "py311h64a7726_0");
    const auto old = record("numpy", "1.19.5", "py39h_1", 1);
    const struct {
        const char* text;
        bool takes_numpy, takes_old;
    } table[] = {
        {"numpy", true, true},
        {"NumPy", true, true},
        {"scipy", false, false},
        {"numpy=1.26", true, false},
        {"numpy==1.26.4", true, false},
        {"numpy==1.26", false, false},
        {"numpy 1.26.*", true, false},
        {"numpy 1.26", false, false},
        {"numpy>=1.20,<2|3.*", true, false},
        {"numpy >= 1.20, < 2", true, false},
        {"numpy >=1.10 , <1.20", false, true},
        {"numpy=1.26.4=py311*", true, false},
        {"numpy=1.26=py311*", false, false},
        {"numpy=1.26.*=py311*", true, false},
        {"numpy 1.26.* py311*", true, false},
        {"numpy>=1.20=py311*", true, false},
        {"numpy=*=py39*", false, true},
        {"numpy[version='>=1.20,<2',build=*h64*]", true, false},
        {"numpy[version=>=1.20,<2,build=*h64*]", true, false},
        {"numpy[build_number='>=1']", false, true},
        {"numpy[build_number=0]", true, false},
        {"numpy[build_number='!=0']", false, true},
        {"numpy[build_number='>=0,<1']", true, false},
        {"numpy[build_number=0|1]", true, true},
        {"numpy[subdir=linux-64]", true, true},
        {"numpy[subdir=noarch]", false, false},
        {"conda-forge::numpy=1.26", true, false},
        {"conda-forge/linux-64::numpy", true, true},
        {"conda-forge[linux-64]::numpy", true, true},
        {"conda-forge[linux-64]::numpy[version='1.26.*']", true, false},
        {"conda-forge[noarch]::numpy[version='1.26.*']", false, false},
        {"pkgs/main/noarch::numpy>=1", false, false},
        {"num*", true, true},
        {"^num.*$", true, true},
        {"* 1.26.4", true, false},
        {"numpy  # a comment", true, true},
        {"numpy=1.26.4=py311h64a7726_0", true, false},
        {"https://x.org/c/linux-64/numpy-1.26.4-py311h64a7726_0.conda", false,
         false}, // the record has no file name
        {"numpy!=1.26.*", false, true},
    };
    for (const auto& [text, takes_numpy, takes_old] : table) {
        const auto spec = parse_match_spec(text);
        ASSERT_TRUE(spec) << text << ": " << to_string(spec.error());
        EXPECT_EQ(spec->matches(numpy), takes_numpy) << text;
        EXPECT_EQ(spec->matches(old), takes_old) << text;
    }
}

TEST(MatchSpec, PartsAreTold) {
    const auto url = test::good(parse_match_spec("https://u:p@conda.anaconda.org/conda-forge/noarch/"
                                                 "a-b-1.0-py_0.tar.bz2#0123456789abcdef0123456789ABCDEF"));
    EXPECT_EQ(url.name, "a-b");
    EXPECT_EQ(url.version->text(), "==1.0");
    EXPECT_EQ(url.build->text(), "py_0");
    EXPECT_EQ(url.md5, "0123456789abcdef0123456789abcdef");
    EXPECT_EQ(url.subdir, "noarch");
    EXPECT_EQ(url.file_name, "a-b-1.0-py_0.tar.bz2");
    EXPECT_EQ(url.channel, "https://u:p@conda.anaconda.org/conda-forge");
    EXPECT_EQ(url.to_string(), "https://conda.anaconda.org/conda-forge/noarch::a-b ==1.0 py_0"
                               "[fn='a-b-1.0-py_0.tar.bz2',md5='0123456789abcdef0123456789abcdef']");
    EXPECT_EQ(parse_match_spec("https://u:p@x.org/c::a >=1").value().text, "https://x.org/c::a >=1");
    EXPECT_FALSE(to_string(parse_match_spec("https://u:p@x.org/c::a >=1 <2").error()).contains("u:p@"));
    const auto hashed = test::good(parse_match_spec("./dir/a-1-0.conda#sha256:" + std::string(64, 'f')));
    EXPECT_EQ(hashed.sha256, std::string(64, 'f'));
    const auto channel = test::good(parse_match_spec("nvidia/label/cuda-12.1.0::cuda-nvcc>=12.0,<13.0a0"));
    EXPECT_EQ(channel.channel, "nvidia/label/cuda-12.1.0");
    EXPECT_EQ(channel.subdir, "");
    EXPECT_EQ(channel.name, "cuda-nvcc");
    EXPECT_EQ(channel.version->text(), ">=12.0,<13.0a0");
    const auto openmpi = test::good(parse_match_spec("openmpi>=5=h*"));
    EXPECT_EQ(openmpi.version->text(), ">=5");
    EXPECT_EQ(openmpi.build->text(), "h*");
    const auto brackets =
        test::good(parse_match_spec("torch[version='>=1',build=*cuda*,channel=\"pytorch\",optional=true]"));
    EXPECT_EQ(brackets.channel, "pytorch");
    EXPECT_EQ(brackets.to_string(), "pytorch::torch >=1 *cuda*");
}

TEST(MatchSpec, MistakesSayWhatIsWrong) {
    for (const auto& [text, why] :
         {std::pair{"", "it is empty"},
          {"numpy >=", "there is no version after '>='"},
          {"numpy >=1 <2", "a space between two conditions"},
          {"=1.2", "it has no package name"},
          {"num/py", "a package name cannot contain '/'"},
          {"::numpy", "there is no channel before '::'"},
          {"a[b::numpy", "a ']' is missing before '::'"},
          {"a[channel='b::c']", "invalid channel"},
          {"a[b", "a package name cannot contain '['"},
          {"a[subdir='b[c']", "invalid platform (linux-64 is a valid one)"},
          {"b[c d]::a", "invalid platform (linux-64 is a valid one)"},
          {"c/noarch:: a-1-0.conda", "it is the name of a package file"},
          {":[noarch]::a", "invalid channel"},
          {"https://u:p@h/c:?d::a", "invalid channel"},
          {"numpy[version]", "each part in brackets must be KEY=VALUE"},
          {"numpy[verison='1.26.*']", "unknown key 'verison' in brackets"},
          {"numpy>=2[when=\"python >=3.10 and __unix\"]", "'when' is not supported\nLeave it out"},
          {"numpy[extras=[a,b]]", "'extras' is not supported\nRequest the packages of the group"},
          {"numpy[version=\">=2\",extras=\"a\"]", "'extras' is not supported"},
          {"numpy[flags=['gpu:*']]", "'flags' is not supported\nSelect the variant with build="},
          {"numpy[build_number='>>1']", "'>>1' is not a build number or a condition on one"},
          {"numpy[extra]", "each part in brackets must be KEY=VALUE"},
          {"numpy[url='https://x/noarch/numpy-1-0.conda']", "Write only the URL"},
          {"numpy[version='1]", "a quotation mark is missing"},
          {"numpy[license=a'b\"c]", "'license' contains both kinds of quotation marks"},
          {"numpy[md5=abc]", "'abc' is not a valid md5 checksum"},
          {"a:b", "namespaces are not supported"},
          {"https://x/noarch/numpy.conda", "its file name does not have the form NAME-VERSION-BUILD"},
          {"https://x/noarch/a-1-0.conda#12", "not an md5 or sha256 checksum"}}) {
        const auto spec = parse_match_spec(text);
        ASSERT_FALSE(spec) << text;
        EXPECT_TRUE(to_string(spec.error()).contains(why)) << to_string(spec.error());
    }
}

TEST(MatchSpecRealData, EveryConditionOfEveryRecordIsRead) {
    const test::TemporaryDirectory cache;
    std::size_t read = 0;
    for (const auto& repodata : real_lists("repodata", cache.path())) {
        const auto data = nlohmann::json::parse(read_file(repodata.json.path).value());
        for (const char* list : {"packages", "packages.conda"})
            if (data.contains(list))
                for (const auto& [name, record] : data.at(list).items())
                    for (const char* key : {"depends", "constrains"})
                        if (record.contains(key))
                            for (const auto& text : record.at(key)) {
                                const auto given = text.get<std::string>();
                                const auto spec = parse_match_spec(given, UnknownKeys::ignored);
                                // One record is in the list because its condition is invalid, others because
                                // they depend on something only under a condition.
                                const bool is_valid =
                                    !name.starts_with("issue_717") && !given.contains("[when=");
                                EXPECT_EQ(spec.has_value(), is_valid)
                                    << repodata.channel.url << " " << name << ": " << text;
                                ++read;
                            }
    }
    EXPECT_GT(read, 50'000U);
}

// A request that is written to an environment's records keeps its meaning.
TEST(MatchSpec, WhatItIsWrittenAsMeansTheSame) {
    for (const char* text : {"a",
                             "a 1.2",
                             "a=1.2",
                             "a==1.2=b_0",
                             "a >=1,<2|3.*",
                             "*",
                             "lib*",
                             "^a.$ 1 ^b$",
                             "c::a",
                             "c/linux-64::a =1",
                             "a[build=x*]",
                             "a[version='>=1', build='^(a|b),c=d .*$']",
                             "a[build=*cuda*,su@dir=noarch]",
                             "a[build='^[ab]::c$']",
                             "k[0-9]*",
                             "c::k[0-9]* >=1[build='a=b']",
                             "a[build='^b|c$']",
                             "a[build=*x::y]",
                             "a[version='=1.2', build=b]",
                             "^a[bc]$ 1[license=MIT]",
                             "a 1[build=\"^it's, [ab]$\"]",
                             "http://[fe80:1:2:3:4:5:6:7]/c::a[build=x]",
                             "a[version='>=1', build_number='>=3']",
                             "a[subdir=noarch]",
                             "c::a[subdir=new-64]",
                             "a[channel=' c ']",
                             "a[fn=a-1-0.tar.bz2]",
                             "a[license=MIT, license_family=\"GPL's\"]",
                             "a[track_features='one two', features=three]",
                             "a[md5=0123456789abcdef0123456789abcdef]",
                             "https://x.org/c/noarch/a-b-1.0-py_0.conda",
                             "a 1.0+cu118",
                             "a !=1.5.*",
                             "a ~=1.4",
                             "a ==1.0|2.0 x"}) {
        const auto spec = parse_match_spec(text);
        ASSERT_TRUE(spec) << text << to_string(spec.error());
        const auto written = spec->to_string();
        const auto again = parse_match_spec(written);
        ASSERT_TRUE(again) << written << ": " << to_string(again.error());
        EXPECT_EQ(again->to_string(), written);
        const auto parts = [](const MatchSpec& one) {
            return std::tuple(
                one.name, one.version ? one.version->text() : "*", one.build ? one.build->text() : "",
                one.build_number ? one.build_number->text() : "", one.channel, one.subdir, one.file_name,
                one.md5, one.license, one.license_family, one.features, one.track_features);
        };
        EXPECT_EQ(parts(*again), parts(*spec)) << text << " became " << written;
    }
}

} // namespace
} // namespace containerize::conda

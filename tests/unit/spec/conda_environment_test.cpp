#include "../good.h"
#include "../temporary.h"
#include "data.h"
#include "spec/conda_environment.h"

#include <gtest/gtest.h>

namespace containerize::spec {
namespace {

using test::TemporaryDirectory;

TEST(EnvironmentYaml, EveryPartIsRead) {
    const TemporaryDirectory directory;
    setenv("CHANNEL_TOKEN", "abc", 1);
    const auto file = directory.write("env.yml", R"(name: demo
channels:
  - conda-forge
  - https://x.org/t/${CHANNEL_TOKEN}/private
  - ./local
  - nodefaults
dependencies:
  - python=3.11
  - conda-forge::numpy >=1.20,<2   # a comment
  - sel(linux): patchelf
  - sel(osx): cctools
  - sel(unix):
    - gawk
  - pip:
    - rich
    - --extra-index-url https://y.org/simple
    - -r more.txt
variables:
  A: 1
  B: "x y"
channel_priority: strict
prefix: /x
unknown: 1
)");
    const auto environment = test::good(read_environment_yaml(file));
    EXPECT_EQ(environment.name, "demo");
    ASSERT_EQ(environment.channels.size(), 3U);
    EXPECT_EQ(environment.channels[1].text, "https://x.org/t/abc/private");
    EXPECT_EQ(environment.channels[2].text, (directory / "local").string());
    EXPECT_EQ(environment.channels[0].where, file.string() + ":3");
    EXPECT_TRUE(environment.no_defaults);
    ASSERT_EQ(environment.dependencies.size(), 4U);
    EXPECT_EQ(environment.dependencies[1].spec.channel, "conda-forge");
    EXPECT_EQ(environment.dependencies[1].where, file.string() + ":9");
    EXPECT_EQ(environment.dependencies[2].spec.name, "patchelf");
    EXPECT_EQ(environment.dependencies[3].spec.name, "gawk");
    ASSERT_EQ(environment.pip.size(), 3U);
    EXPECT_EQ(environment.pip[1].text, "--extra-index-url https://y.org/simple");
    EXPECT_EQ(environment.variables,
              (std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"B", "x y"}}));
    EXPECT_EQ(environment.channel_priority, conda::ChannelPriority::strict);
    EXPECT_EQ(environment.notes.size(), 2U);
}

TEST(EnvironmentYaml, AnAliasBombAndDeepNestingAreRefusedQuickly) {
    const TemporaryDirectory directory;
    std::string bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n";
    for (char c = 'b'; c < 'i'; ++c) {
        const std::string before(1, static_cast<char>(c - 1));
        bomb += std::string(1, c) + ": &" + c + " [*" + before + ",*" + before + ",*" + before + ",*" +
                before + "]\n";
    }
    bomb += "dependencies: *h\n";
    EXPECT_FALSE(read_environment_yaml(directory.write("bomb.yml", bomb)));
    EXPECT_FALSE(
        read_environment_yaml(directory.write("deep.yml", "dependencies: " + std::string(100'000, '['))));
    // yaml-cpp would read an endless sequence of empty documents from these.
    for (const std::string text : {",", "# c\n,", "dependencies: [a]\n]\n", "dependencies: [a]\n---\n,"})
        EXPECT_FALSE(read_environment_yaml(directory.write("more.yml", text))) << text;
}

TEST(EnvironmentYaml, MoreEntriesThanAnyRealFileHasAreNotMade) {
    const TemporaryDirectory directory;
    const auto file = directory.write("large.yml", "dependencies: [" + std::string(1'000'000, ',') + "]");
    const auto refused = test::error_of(read_environment_yaml(file));
    EXPECT_EQ(to_string(refused), file.string() + ": this file has too many entries: the limit is 50000");
    EXPECT_EQ(refused.fault, Fault::input);
}

TEST(EnvironmentYamlRealData, EveryFileIsRead) {
    const auto files = test::data_files("env-yml", "");
    EXPECT_GT(files.size(), 30U);
    for (const auto& file : files) {
        const auto environment = read_environment_yaml(file);
        EXPECT_TRUE(environment) << to_string(environment.error());
    }
}

TEST(EnvironmentYaml, NoTextHasANul) {
    const TemporaryDirectory directory;
    for (const char* text : {"dependencies: [a]\nvariables: {OK: \"a\\0b\"}\n",
                             "dependencies: [a]\nvariables: {\"a\\x00b\": c}\n"}) {
        const auto environment = test::error_of(read_environment_yaml(directory.write("env.yml", text)));
        EXPECT_EQ(environment.fault, Fault::input);
        EXPECT_EQ(environment.what, "a string in this file contains a NUL character");
        EXPECT_TRUE(environment.where.ends_with("env.yml:2")) << environment.where;
    }
}

} // namespace
} // namespace containerize::spec

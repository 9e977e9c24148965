#include "../good.h"
#include "../temporary.h"
#include "spec/conda_environment.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace containerize::spec {
namespace {

using test::TemporaryDirectory;

constexpr std::string_view workspace =
    "[workspace]\nchannels = [\"conda-forge\"]\nplatforms = [\"linux-64\"]\n";

class PixiManifest : public testing::Test {
protected:
    Result<CondaEnvironment> read(std::string_view text, const std::string& environment = {}) {
        file_ = directory_.write("pixi.toml", std::string(text));
        return read_pixi_toml(file_, {.subdir = "linux-64", .environment = environment, .machine = [] {
                                          return Result<std::vector<conda::VirtualPackage>>(
                                              {{.name = "__glibc", .version = "2.36", .build = "0"},
                                               {.name = "__cuda", .version = "12.4", .build = "0"}});
                                      }});
    }

    /// Reads lines that come after those of a workspace.
    CondaEnvironment with(std::string_view text, const std::string& environment = {}) {
        return test::good(read(std::string(workspace) + std::string(text), environment));
    }

    std::string refused(std::string_view text, const std::string& environment = {}) {
        const auto result = read(text, environment);
        if (result) return "taken";
        EXPECT_EQ(result.error().fault, Fault::input);
        auto message = to_string(result.error());
        const auto at = message.find(file_.string());
        return at == message.npos ? message : message.replace(at, file_.string().size(), "FILE");
    }

    TemporaryDirectory directory_;
    std::filesystem::path file_;
};

std::vector<std::string> texts(const std::vector<CondaDependency>& dependencies) {
    std::vector<std::string> all;
    for (const auto& one : dependencies)
        all.push_back(one.spec.to_string());
    return all;
}

std::vector<std::string> texts(const std::vector<Located>& lines) {
    std::vector<std::string> all;
    for (const auto& one : lines)
        all.push_back(one.text);
    return all;
}

using Texts = std::vector<std::string>;

TEST_F(PixiManifest, EveryPartIsRead) {
    const auto environment = test::good(read(R"(
[project]
name = "demo"
channels = ["low", {channel = "high", priority = 2}, "./local", "https://x.org/c"]
platforms = ["osx-arm64", "linux-64"]
channel-priority = "disabled"
[dependencies]
python = "3.11.*"
NumPy = {version = ">=1.20,<2", build = "py311*", channel = "low"}
any = "*"
[host-dependencies]
any = ">=2"
[target.linux.dependencies]
patchelf = "*"
[target.linux-64.dependencies]
patchelf = "0.18"
[target.osx.dependencies]
cctools = "*"
[constraints]
openssl = ">=3"
[activation.env]
A = "1"
[target.unix.activation.env]
A = "2"
[tasks]
start = "python x.py"
[system-requirements]
libc = {family = "glibc", version = "2.28"}
cuda = "12"
)"));
    EXPECT_EQ(environment.name, "demo");
    EXPECT_EQ(texts(environment.channels),
              (Texts{"high", "low", (directory_ / "local").string(), "https://x.org/c"}));
    EXPECT_EQ(environment.channels[0].where, file_.string() + ":4");
    EXPECT_TRUE(environment.no_defaults);
    EXPECT_EQ(environment.channel_priority, conda::ChannelPriority::disabled);
    EXPECT_EQ(texts(environment.dependencies),
              (Texts{"any >=2", "low::numpy >=1.20,<2 py311*", "patchelf 0.18", "python 3.11.*"}));
    EXPECT_EQ(environment.dependencies[1].where, file_.string() + ":9");
    EXPECT_EQ(texts(environment.constraints), (Texts{"openssl >=3"}));
    EXPECT_EQ(environment.variables, (std::vector<std::pair<std::string, std::string>>{{"A", "2"}}));
    ASSERT_EQ(environment.machine.size(), 2U);
    EXPECT_EQ(environment.machine[0].package.name + environment.machine[0].package.version, "__cuda12");
    EXPECT_EQ(environment.machine[1].package.name + environment.machine[1].package.version, "__glibc2.28");
    EXPECT_TRUE(environment.notes.empty());
}

TEST_F(PixiManifest, RequirementsOfPip) {
    std::filesystem::create_directory(directory_ / "own project");
    const auto environment = with(R"(
[pypi-options]
index-url = "https://x.org/simple"
extra-index-urls = ["https://y.org/simple"]
find-links = [{path = "wheels"}, {url = "https://z.org/w"}]
no-build = ["a", "b"]
no-binary = true
prerelease-mode = "allow"
[pypi-dependencies]
any = "*"
extras = {version = ">=1.0", extras = ["x", "y"]}
git = {git = "https://h/g.git", tag = "v1", subdirectory = "a b", extras = ["x"]}
local = {git = "file:///srv/g.git"}
markers = {version = "==1", env-markers = "python_version < '3.12'"}
path = {path = "own project"}
path2 = {path = "./own project", editable = true, extras = ["dev"]}
url = {url = "https://h/u-1.0;x.whl"}
)");
    const auto place = "file://" + (directory_ / "own%20project").string();
    EXPECT_EQ(texts(environment.pip),
              (Texts{"--index-url https://x.org/simple", "--extra-index-url https://y.org/simple",
                     "--find-links " + (directory_ / "wheels").string(), "--find-links https://z.org/w",
                     "--only-binary a", "--only-binary b", "--no-binary :all:", "--pre", "any",
                     "extras[x,y]>=1.0", "git[x] @ git+https://h/g.git@v1#subdirectory=a%20b",
                     "git+file:///srv/g.git#egg=local", "markers==1 ; python_version < '3.12'",
                     "path @ " + place, "-e " + place + "[dev]", "url @ https://h/u-1.0%3Bx.whl"}));
}

TEST_F(PixiManifest, AnEnvironmentHasItsFeatures) {
    constexpr std::string_view features = R"(
[dependencies]
python = "*"
[activation.env]
A = "default"
[feature.test]
channels = ["other"]
[feature.test.dependencies]
python = "3.11.*"
pytest = "*"
[feature.test.activation.env]
A = "test"
[feature.docs.pypi-dependencies]
sphinx = "*"
[feature.broken.dependencies]
x = 1
[environments]
test = ["test"]
docs = {features = ["docs"], no-default-feature = true, solve-group = "all"}
lost = ["missing"]
)";
    EXPECT_EQ(texts(with(features).dependencies), (Texts{"python"}));
    const auto test = with(features, "test");
    EXPECT_EQ(texts(test.dependencies), (Texts{"pytest", "python 3.11.*", "python"}));
    EXPECT_EQ(texts(test.channels), (Texts{"other", "conda-forge"}));
    EXPECT_EQ(test.variables, (std::vector<std::pair<std::string, std::string>>{{"A", "test"}}));
    EXPECT_EQ(test.channel_priority, conda::ChannelPriority::strict);
    const auto docs = with(features, "docs");
    EXPECT_TRUE(docs.dependencies.empty());
    EXPECT_EQ(texts(docs.pip), (Texts{"sphinx"}));
    EXPECT_EQ(docs.notes.size(), 1U); // of the group
    const auto all = std::string(workspace) + std::string(features);
    EXPECT_EQ(refused(all, "prod"),
              "FILE: this pixi manifest has no environment 'prod': it has default, docs, lost, "
              "test\nChoose one of these with --environment.");
    EXPECT_EQ(refused(all, "lost"), "FILE:23: there is no feature 'missing'\nCorrect the name, or add "
                                    "[feature.missing].");
}

TEST_F(PixiManifest, ThePlatformThatFitsTheMachineIsChosen) {
    constexpr std::string_view platforms = R"(
[workspace]
channels = ["c"]
platforms = ["osx-arm64", {name = "new", platform = "linux-64", glibc = "2.40"},
             {name = "gpu", platform = "linux-64", cuda = "12.0"}, "linux-64"]
[dependencies]
a = "*"
[target.gpu.dependencies]
b = "*"
[feature.mac]
platforms = ["osx-arm64"]
[feature.plain]
platforms = ["new"]
[environments]
mac = ["mac"]
plain = ["plain"]
)";
    const auto chosen = test::good(read(platforms));
    EXPECT_EQ(texts(chosen.dependencies), (Texts{"a", "b"}));
    ASSERT_EQ(chosen.machine.size(), 1U);
    EXPECT_EQ(chosen.machine[0].package.name, "__cuda");
    EXPECT_EQ(test::good(read(platforms, "plain")).machine.at(0).package.version, "2.40");
    EXPECT_EQ(refused(platforms, "mac"),
              "FILE: this pixi environment is not for linux-64: it is for osx-arm64\nAdd "
              "the platform to `platforms`.");
}

TEST_F(PixiManifest, ALockBesideItIsNamed) {
    directory_.write("pixi.lock", "");
    const auto environment = with("[dependencies]\na = \"*\"\n");
    ASSERT_EQ(environment.notes.size(), 1U);
    EXPECT_NE(environment.notes[0].find("pixi.lock"), std::string::npos);
}

TEST_F(PixiManifest, TablesOfAPyprojectAreRead) {
    const auto environment =
        test::good(read("[tool.pixi.workspace]\nchannels = [\"c\"]\n[tool.pixi.dependencies]\na = \"*\"\n"));
    EXPECT_EQ(texts(environment.dependencies), (Texts{"a"}));
}

TEST_F(PixiManifest, WhatCannotBeDoneIsRefused) {
    const auto rest = [this](std::string_view text) {
        return refused(std::string(workspace) + "[dependencies]\na = \"*\"\n" + std::string(text));
    };
    EXPECT_EQ(refused("[dependencies]\na = \"*\"\n"),
              "FILE: this pixi manifest has no [workspace]\nGive the manifest of the workspace.");
    EXPECT_EQ(refused(workspace), "FILE: this pixi environment requests no package\nList packages in "
                                  "[dependencies], or choose another environment with --environment.");
    EXPECT_EQ(
        rest("b = {path = \"x\"}"),
        "FILE:6: 'b' must be built from source, which containerize cannot do: it has `path`\nBuild it with "
        "`pixi build`, and give the resulting package: `url = \"FILE.conda\"`.");
    EXPECT_EQ(rest("b = {version = \"1\",\n when = \"__unix\",\n}"),
              "FILE:6: invalid package specification: 'b[when=x]': 'when' is not supported\nLeave it out, or "
              "request "
              "the package only where the condition holds.");
    EXPECT_TRUE(rest("[activation.env]\nE = \"x\\u0000y\"").contains("contains a NUL character"));
    EXPECT_EQ(
        rest("b = {verson = \"1\"}"),
        "FILE:6: `verson` is not a key that containerize knows in the entry of 'b'\nDid you mean `version`?");
    EXPECT_EQ(rest("b = \"1 2 3\""),
              "FILE:6: invalid package specification: 'b[version=\"1 2 3\"]': '1 2 3' has a "
              "space between two conditions\nSeparate conditions with ',' (and) or '|' (or).");
    EXPECT_EQ(rest("\"b[c\" = \"1\""),
              "FILE:6: invalid name of a package: 'b[c'\nThe version is the value: `numpy = \">=1.26\"`.");
    // It stays within quotation marks of the other kind.
    EXPECT_NE(rest("b = '1\",build=\"x'").find("invalid version condition: '1\",build=\"x'"),
              std::string::npos);
    EXPECT_EQ(rest("[dependences]\nb = \"1\""),
              "FILE:6: `dependences` is not a key that containerize knows in a pixi manifest\nDid you mean "
              "`dependencies`?");
    EXPECT_EQ(rest("[pypi-dependencies]\nb = \"1.0\""),
              "FILE:7: invalid version of 'b': '1.0'\nWrite it like `==1.26.4` or `>=1.26,<3`.");
    EXPECT_EQ(rest("[pypi-dependencies]\nb = \"==1.0 --pre\""),
              "FILE:7: invalid requirement 'b==1.0 --pre': pip would take - for an option\nRemove it, or "
              "write it in "
              "a requirements file as pip documents it.");
    EXPECT_NE(
        rest("[pypi-dependencies]\nb = {version = \"*\", index = \"https://x\"}").find("an index of its own"),
        std::string::npos);
    EXPECT_NE(
        rest("[pypi-options]\nno-build-isolation = [\"b\"]").find("`no-build-isolation` is not supported"),
        std::string::npos);
    EXPECT_NE(
        rest("[pypi-options]\nindex-strategy = \"first-index\"").find("the best version of all indexes"),
        std::string::npos);
    EXPECT_NE(rest("[pypi-options]\nindex-url = \"https://x/ --pre\"").find("invalid requirement"),
              std::string::npos);
    EXPECT_EQ(rest("[target.linx.dependencies]\nb = \"*\""),
              "FILE:6: 'linx' is not a platform\nWrite linux, unix, or a platform such as linux-64.");
    EXPECT_NE(rest("[activation.env]\nB = \"$HOME/x\"").find("pixi lets a shell expand it"),
              std::string::npos);
    EXPECT_NE(rest("[dev]\nb = {path = \".\"}").find("[dev] is not supported"), std::string::npos);
    EXPECT_NE(rest("[system-requirements]\ncuda = 12.10").find("must be in quotes"), std::string::npos);
    EXPECT_NE(rest("[exclude-newer]\nb = \"0d\"").find("[exclude-newer] is not supported"),
              std::string::npos);
    EXPECT_NE(rest("[constraints]\nb = {channel = \"c\"}").find("a constraint cannot have a channel"),
              std::string::npos);
}

TEST_F(PixiManifest, MessagesShowNoLogin) {
    const auto text =
        std::string(workspace) + "[pypi-dependencies]\nb = {url = \"https://me:secret@h/x #y\"}\n";
    EXPECT_EQ(refused(text).find("secret"), std::string::npos);
    const auto other =
        std::string(workspace) + "[dependencies]\nb = {url = \"https://me:secret@h/x.conda\"}\n";
    EXPECT_EQ(refused(other).find("secret"), std::string::npos);
}

} // namespace
} // namespace containerize::spec

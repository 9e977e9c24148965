#include "build/command_request.h"
#include "good.h"
#include "spec/requirements.h"
#include "temporary.h"

#include <functional>
#include <set>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace containerize::build {

namespace {

using test::error_of;
using test::good;
using test::TemporaryDirectory;

/// All that a key is made from.
struct Case {
    CommandRequest request{.packages = {"numpy"}};
    inputs::BuildOptions options;
    inputs::Inputs inputs;
    nlohmann::json machine = {{"platform", "linux-64"}};

    static Case of_pip(const std::string& line) {
        Case one;
        one.inputs.requirements.emplace().lines = {{.file = "r.txt", .number = 1, .text = line}};
        return one;
    }
    static Case of_conda() {
        Case one;
        one.request.conda = true;
        one.inputs.conda.emplace();
        return one;
    }
    [[nodiscard]] std::string key() const { return key_of(request, options, inputs, machine); }
};

/// Expects that each change gives another key.
void expect_all_different(const Case& plain, const std::vector<std::function<void(Case&)>>& changes) {
    std::set<std::string> keys = {plain.key()};
    for (std::size_t i = 0; i < changes.size(); ++i) {
        auto changed = plain;
        changes[i](changed);
        EXPECT_TRUE(keys.insert(changed.key()).second) << "change " << i;
    }
}

} // namespace

TEST(CommandRequest, KeysOfPipDependOnWhatIsInstalled) {
    const auto plain = Case::of_pip("numpy");
    EXPECT_EQ(plain.key().size(), 32U);
    EXPECT_EQ(plain.key(), Case::of_pip("numpy").key());
    expect_all_different(
        plain,
        {[](Case& one) { one.inputs.requirements->lines[0].text = "numpy<2"; },
         [](Case& one) { one.inputs.requirements->lines[0].constraint = true; },
         [](Case& one) { one.inputs.requirements->lines.push_back({.file = {}, .text = "six"}); },
         [](Case& one) { one.inputs.environment["PIP_INDEX_URL"] = "https://host/simple"; },
         [](Case& one) { one.inputs.environment["UV_INDEX_URL"] = "https://host/simple"; },
         [](Case& one) { one.options.python = "3.12"; },
         [](Case& one) { one.options.installer = pip::Installer::pip; },
         [](Case& one) { one.options.settings.base.reference = "docker://debian:12"; },
         [](Case& one) { one.options.settings.engine = "native"; },
         [](Case& one) {
             one.options.site.environment.push_back({launch::EnvironmentChange::Kind::set, "DATA", "/data"});
         },
         [](Case& one) { one.request.exclude_newer = "2026-01-01"; },
         [](Case& one) { one.machine["python"] = "/usr/bin/python3.12"; }});
}

TEST(CommandRequest, KeysOfCondaDependOnWhatIsInstalled) {
    expect_all_different(
        Case::of_conda(),
        {[](Case& one) {
             one.request.packages = {"numpy", "pandas"};
         },
         [](Case& one) { one.request.packages = {"numpypandas"}; },
         [](Case& one) { one.request.channels = {"bioconda"}; },
         [](Case& one) {
             one.request.channels = {"bioconda", "conda-forge"};
         },
         [](Case& one) {
             one.request.channels = {"conda-forge", "bioconda"};
         },
         [](Case& one) { one.inputs.conda_config.channels = {{.text = "bioconda"}}; },
         [](Case& one) { one.inputs.conda_config.channel_alias = "https://host"; },
         [](Case& one) { one.inputs.conda_config.channel_priority = conda::ChannelPriority::strict; },
         [](Case& one) { one.inputs.conda_config.pinned_packages = {{.text = "python 3.11.*"}}; },
         [](Case& one) {
             one.inputs.conda_config.custom_channels = {{"a", "https://host"}};
         },
         [](Case& one) { one.options.conda.allow_defaults = true; },
         [](Case& one) {
             one.machine["packages"] = {{"__cuda", "12.4", "0"}};
         }});
}

TEST(CommandRequest, KeysDoNotDependOnWhatChangesNothing) {
    const auto plain = Case::of_pip("name @ https://me:old-word@host/name.whl?file=1#sha256=00");
    auto same = Case::of_pip("name @ https://me:new-word@host/name.whl?file=1#sha256=00");
    same.options.conda.offline = true;
    same.options.jobs = 3;
    same.options.prefix = "/elsewhere";
    same.inputs.environment["PIP_CACHE_DIR"] = "/tmp/cache";
    same.inputs.environment["PATH"] = "/opt/bin";
    same.inputs.working_directory = "/elsewhere"; // nothing is relative to it
    EXPECT_EQ(same.key(), plain.key());
    EXPECT_NE(same.key(), Case::of_pip("name @ https://me:word@host/name.whl?file=2#sha256=00").key());
    EXPECT_NE(same.key(), Case::of_pip("name @ https://me:word@host/name.whl?file=1#sha256=11").key());
}

TEST(CommandRequest, KeysTellLocalFilesApart) {
    const TemporaryDirectory place;
    place.write("name-1.whl", "old");
    auto one = Case::of_pip("./name-1.whl");
    one.inputs.working_directory = place.path();
    const auto key = one.key();
    EXPECT_EQ(one.key(), key);
    place.write("name-1.whl", "newer");
    EXPECT_NE(one.key(), key);
    const auto newer = one.key();
    one.inputs.working_directory = "/elsewhere";
    EXPECT_NE(one.key(), newer);
}

TEST(CommandRequest, KeysDependOnTheWorkingDirectoryOnlyForLocalPaths) {
    const TemporaryDirectory place;
    place.write("project/pyproject.toml", "");
    for (const auto& [line, is_local] : {std::pair("-e .", true),
                                         {"-e.", true},
                                         {"./project", true},
                                         {"project[extra]", true},
                                         {"--find-links=project", true},
                                         {"-fwheels", true},
                                         {"name @ ./project", true},
                                         {"numpy<2", false},
                                         {"--pre", false},
                                         {"--no-binary numpy", false},
                                         {"--index-url https://host/simple", false},
                                         {"numpy>1; python_version > '3.8'", false},
                                         {"-r /a/r.txt", false}}) {
        auto one = Case::of_pip(line);
        one.inputs.working_directory = place.path();
        auto other = one;
        other.inputs.working_directory = "/";
        EXPECT_EQ(one.key() != other.key(), is_local) << line;
    }
}

TEST(CommandRequest, KeysDependOnTheLinesOfFilesAndNotOnTheirPaths) {
    EXPECT_EQ(Case::of_pip("-r /a/r.txt").key(), Case::of_pip("--requirement=/b/r.txt").key());
    EXPECT_NE(Case::of_pip("project").key(), Case::of_pip("crypt").key());
    EXPECT_NE(Case::of_pip("-r https://host/a").key(), Case::of_pip("-r https://host/b").key());
}

TEST(CommandRequest, KeysDependOnConfigurationOfPip) {
    const TemporaryDirectory home;
    auto one = Case::of_pip("numpy");
    one.inputs.environment["HOME"] = home.path().string();
    const auto without = one.key();
    home.write(".config/pip/pip.conf", "[global]\nindex-url = https://me:word@host/simple\n");
    const auto key = one.key();
    EXPECT_NE(key, without);
    home.write(".config/pip/pip.conf", "[global]\nindex-url = https://me:changed@host/simple\n");
    EXPECT_EQ(one.key(), key);
    home.write(".config/pip/pip.conf", "[global]\nindex-url = https://me:word@host/other\n");
    EXPECT_NE(one.key(), key);
}

TEST(CommandRequest, KeysTellFilesApartThatSettingsName) {
    const TemporaryDirectory place;
    const auto file = place.write("my constraints.txt", "six<2\n").string();
    place.write("work/constraints.txt", "six<2\n");
    const auto settings = [&place](const std::string& text) {
        return place.write("settings", text).string();
    };
    for (const auto& [name, value] :
         {std::pair<std::string, std::string>("PIP_CONSTRAINT", "constraints.txt"),
          {"PIP_CONSTRAINT", "other.txt " + (place / "work/constraints.txt").string()},
          {"UV_CONSTRAINT", file},
          {"UV_OVERRIDE", "constraints.txt"},
          {"PIP_CONFIG_FILE", settings("[install]\nconstraint =\n    constraints.txt\n")}}) {
        auto one = Case::of_pip("numpy");
        one.inputs.working_directory = place / "work";
        one.inputs.environment[name] = value;
        const auto key = one.key();
        EXPECT_EQ(one.key(), key);
        const std::string changed = value == file ? "my constraints.txt" : "work/constraints.txt";
        place.write(changed, "six<1.16\n");
        EXPECT_NE(one.key(), key) << name << "=" << value;
        place.write(changed, "six<2\n");
    }
}

TEST(CommandRequest, KeysDoNotDependOnFilesThatPipWrites) {
    const TemporaryDirectory place;
    auto one = Case::of_pip("numpy");
    one.inputs.working_directory = place.path();
    one.inputs.environment["PIP_LOG"] = place.write("pip.log", "").string();
    one.inputs.environment["PIP_CONFIG_FILE"] = place.write("pip.conf", "[global]\nlog = pip.log\n").string();
    const auto key = one.key();
    place.write("pip.log", "packages were installed\n");
    EXPECT_EQ(one.key(), key);
}

TEST(CommandRequest, KeysDependOnSettingsOfUvInProjects) {
    const TemporaryDirectory place;
    auto one = Case::of_pip("numpy");
    one.inputs.working_directory = place / "project/src";
    std::set<std::string> keys = {one.key()};
    place.write("project/pyproject.toml", "[project]\nname = 'x'\n");
    EXPECT_EQ(one.key(), *keys.begin());
    for (const auto& [file, text] : {std::pair("project/pyproject.toml", "[tool.uv]\n"),
                                     {"project/pyproject.toml", "[tool.uv]\nconstraint-dependencies = []\n"},
                                     {"uv.toml", "no-index = true\n"},
                                     {"project/src/uv.toml", ""}}) {
        place.write(file, text);
        EXPECT_TRUE(keys.insert(one.key()).second) << file << "\n" << text;
    }
    one.inputs.working_directory = place / "elsewhere";
    EXPECT_TRUE(keys.insert(one.key()).second);
}

TEST(CommandRequest, IsWrittenForBuilds) {
    const CommandRequest pip{.packages = {"numpy<2", "six"}, .requirements = {"/a/r.txt"}};
    EXPECT_STREQ(specification_name(pip), "requirements.txt");
    EXPECT_EQ(specification_of(pip), "numpy<2\nsix\n-r /a/r.txt\n");
    EXPECT_EQ(words_of(pip), (std::vector<std::string>{"numpy<2", "six", "-r", "/a/r.txt"}));
    const CommandRequest conda{
        .packages = {"python=3.12", "a[build='x']: \"y\""}, .conda = true, .channels = {"bioconda"}};
    EXPECT_STREQ(specification_name(conda), "environment.yml");
    EXPECT_EQ(specification_of(conda), "channels:\n- \"bioconda\"\ndependencies:\n- \"python=3.12\"\n"
                                       "- \"a[build='x']: \\\"y\\\"\"\n");
    EXPECT_EQ(words_of(conda),
              (std::vector<std::string>{"-c", "bioconda", "python=3.12", "a[build='x']: \"y\""}));
}

TEST(CommandRequest, HasFilesWithAnyPath) {
    const TemporaryDirectory place;
    const auto file = place.write("my #1 dir's \"x\\y\"/req.txt", "six\n");
    const CommandRequest request{.requirements = {file}};
    const auto read =
        good(spec::read_requirements(place.write("requirements.txt", specification_of(request)), {}));
    ASSERT_EQ(read.lines.size(), 2U);
    EXPECT_EQ(read.lines.back().file, file);
    EXPECT_EQ(read.lines.back().text, "six");
}

TEST(CommandRequest, HasOnePackageInEachText) {
    EXPECT_TRUE(check_packages({.packages = {"numpy", "name @ https://host/x.whl#sha256=0", "./dir"}}));
    for (const char* text : {"", " ", "-r file", "--index-url https://host", "# six", "six\nnumpy", "six\\",
                             "six\\ ", "six\t", "six\x1b[2J", "six\x7f"}) {
        const auto error = error_of(check_packages({.packages = {"numpy", text}}));
        EXPECT_EQ(error.fault, Fault::input);
        EXPECT_EQ(error.where, "--with");
    }
}

} // namespace containerize::build

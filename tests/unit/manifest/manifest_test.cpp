#include "core/version.h"
#include "good.h"
#include "launch/launch_plan.h"
#include "manifest/manifest.h"

#include <gtest/gtest.h>

namespace containerize::manifest {
namespace {

Manifest example() {
    Manifest manifest;
    manifest.tool_version = "1.2.3";
    manifest.programs_version = "1.3.0";
    manifest.prefix = "/data/env \"x\"";
    manifest.created = "2026-01-02T03:04:05Z";
    manifest.image = {.file = "env.sqfs", .size = 4096, .sha256 = "abc"};
    manifest.wrapper_paths = {"bin", "opt/bin"};
    manifest.activation = {{launch::EnvironmentChange::Kind::prepend, "PATH", "${prefix}/bin"}};
    manifest.activation_scripts = {"etc/conda/activate.d/x.sh"};
    manifest.environment = {{launch::EnvironmentChange::Kind::unset, "GONE", {}},
                            {launch::EnvironmentChange::Kind::set, "TEXT", "line\nbreak"}};
    manifest.build = {{"files", 3}};
    manifest.settings.base = {
        .reference = "docker://debian:13",
        .digest = "sha256:abc",
        .file = "/bases/abc.sqfs",
        .offset = 512,
        .isolate = true,
        .environment = {{launch::EnvironmentChange::Kind::prepend, "PATH", "/opt/bin"}}};
    manifest.settings.binds = {{.source = "/a", .target = "/b", .read_only = true, .required = false}};
    manifest.settings.gpu = "amd";
    return manifest;
}

TEST(Manifest, IsReadAsItWasWritten) {
    const auto read = test::good(parse_manifest(to_text(example()), "m"));
    EXPECT_EQ(read.prefix, example().prefix);
    EXPECT_EQ(read.image.size, 4096U);
    EXPECT_EQ(read.wrapper_paths, example().wrapper_paths);
    ASSERT_EQ(read.environment.size(), 2U);
    EXPECT_EQ(read.environment[0].kind, launch::EnvironmentChange::Kind::unset);
    EXPECT_EQ(read.environment[1].value, "line\nbreak");
    EXPECT_EQ(to_text(read), to_text(example()));
}

TEST(Manifest, WhatCannotBeOneIsRefused) {
    const auto changed = [](const std::string& from, const std::string& to) {
        std::string text = to_text(example());
        const auto at = text.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return text.replace(at, from.size(), to);
    };
    const std::pair<std::string, const char*> cases[] = {
        {"", "the JSON text ends too early, in line 1"},
        {"[]", "a value that must be an object is not one"},
        {"{}", "'format' not found"},
        {changed("\"format\": 1", "\"format\": 0"), "it has format 0, and this version reads format 1"},
        {changed("\"env.sqfs\"", "\"../env.sqfs\""), "an image is not below the prefix"},
        {changed("\"env.sqfs\"", "\"\""), "an image is not below the prefix"},
        {changed("\"/data/", "\"data/"), "the prefix is not an absolute path"},
        {changed("\"etc/conda", "\"../conda"), "an activation script is not below the prefix"},
        {changed("\"opt/bin\"", "\"../../etc\""), "a wrapper path is not below the prefix"},
        {changed("\"etc/conda", "\"/etc/conda"), "an activation script is not below the prefix"},
        {changed("\"unset\"", "\"frob\""), "unknown operation 'frob'"},
        {changed("\"GONE\"", "\"A=B\""), "invalid variable 'A=B'"},
        {changed("\"size\": 4096", "\"size\": \"big\""), "a number is not an integer, or is out of range"},
    };
    for (const auto& [text, why] : cases) {
        const auto read = parse_manifest(text, "/e/containerize.json");
        ASSERT_FALSE(read) << text;
        EXPECT_TRUE(to_string(read.error()).contains(why)) << to_string(read.error());
        EXPECT_TRUE(to_string(read.error())
                        .starts_with("/e/containerize.json: this version cannot read the manifest"));
    }
}

TEST(Manifest, OnlyInstallationsOfNewerVersionsAreRefused) {
    auto manifest = example();
    for (const auto* version : {this_version, "0.1.0", ""}) {
        manifest.programs_version = version;
        EXPECT_TRUE(check_not_newer(manifest, "/e")) << version;
    }
    manifest.programs_version = "x"; // only a later version can have written it
    EXPECT_FALSE(check_not_newer(manifest, "/e"));
    manifest.programs_version = "1000.0.0";
    const auto refused = check_not_newer(manifest, "/e");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().fault, Fault::input);
    EXPECT_EQ(to_string(refused.error()),
              "/e: only a newer containerize can change this installation: it was made or upgraded by "
              "containerize 1000.0.0, and this is version " +
                  std::string(this_version) + "\nUse containerize 1000.0.0 or newer.");
    auto root = nlohmann::json::parse(to_text(manifest));
    root["format"] = manifest_format + 1;
    const auto read = parse_manifest(root.dump(), "/e/containerize.json");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().fault, Fault::input);
    EXPECT_TRUE(to_string(read.error())
                    .starts_with("/e/containerize.json: only a newer containerize can use this installation: "
                                 "it was made or upgraded by containerize 1000.0.0, "));
    root.erase("programs_version");
    EXPECT_TRUE(to_string(parse_manifest(root.dump(), "/e").error())
                    .ends_with("by a newer version, and this is version " + std::string(this_version) +
                               "\nUse the newest version."));
}

TEST(Manifest, OfVersionsThatDidNotRecordTheirProgramsTheStatesVersionCounts) {
    auto root = nlohmann::json::parse(to_text(example()));
    root.erase("programs_version");
    EXPECT_EQ(test::good(parse_manifest(root.dump(), "m")).programs_version, "1.2.3");
}

TEST(Manifest, WhatItSaysOfItsBuildHasTheShapeThatIsRead) {
    auto root = nlohmann::json::parse(to_text(example()));
    for (const auto* build :
         {"[]", "7", "\"x\"", R"({"files": "many"})", R"({"command": {}})", R"({"python": "3"})",
          R"({"python": {"version": 3}})", R"({"python": {"bundled": []}})"}) {
        root["build"] = nlohmann::json::parse(build);
        const auto read = parse_manifest(root.dump(), "/e/containerize.json");
        ASSERT_FALSE(read) << build;
        EXPECT_EQ(read.error().fault, Fault::input);
    }
    root["build"] = nullptr;
    const auto read = test::good(parse_manifest(root.dump(), "/e/containerize.json"));
    EXPECT_EQ(read.build, nlohmann::json::object());
}

} // namespace
} // namespace containerize::manifest

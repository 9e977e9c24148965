#include "conda/virtual_packages.h"
#include "data.h"
#include "inputs/inputs.h"
#include "temporary.h"

#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace containerize::inputs {

namespace {

using test::TemporaryDirectory;
using Texts = std::vector<std::string>;

/// What is read is the environment at the start of the process.
[[maybe_unused]] const bool prepared = setenv("PIP_TARGET", "/elsewhere", 1) == 0 &&
                                       setenv("UV_NO_VERIFY_HASHES", "1", 1) == 0 &&
                                       setenv("CONDA_CHANNELS", "mine", 1) == 0;

Texts texts_of(const auto& located) {
    Texts texts;
    for (const auto& one : located)
        texts.push_back(one.text);
    return texts;
}

class InputsTest : public testing::Test {
protected:
    InputsTest() {
        options_.prefix = at("env");
        options_.python = "/usr/bin/python3";
        options_.conda.use_config = false;
        directory_.write("requirements.txt", "six\n-r more.txt\n");
        directory_.write("more.txt", "iniconfig\n");
        directory_.write("env.yml", "dependencies:\n- python\n");
        directory_.write("software/bin/tool", "");
        directory_.write("software/extra/tool", "");
        directory_.write("script.sh", "");
    }
    ~InputsTest() override { unsetenv("SOURCE_DATE_EPOCH"); }

    [[nodiscard]] std::string at(const std::string& name) const { return (directory_ / name).string(); }
    /// For a conda environment with this text.
    void conda(const std::string& text) {
        options_.spec = directory_.write("env.yml", text);
        options_.python.clear();
    }
    static Inputs good(Result<Inputs> checked) {
        EXPECT_TRUE(checked) << to_string(checked.error());
        return checked ? std::move(*checked) : Inputs();
    }
    static std::string refused(const Result<Inputs>& checked) {
        EXPECT_FALSE(checked);
        if (checked) return {};
        EXPECT_EQ(checked.error().fault, Fault::input);
        return checked.error().what;
    }

    TemporaryDirectory directory_;
    BuildOptions options_;
};

TEST_F(InputsTest, OfARequirementsFile) {
    options_.spec = at("requirements.txt");
    options_.post_install = at("script.sh");
    const auto inputs = good(check_inputs(options_));
    EXPECT_EQ(inputs.prefix, at("env"));
    EXPECT_TRUE(inputs.requirements);
    EXPECT_EQ(inputs.mode, "venv");
    EXPECT_EQ(inputs.files, (std::vector<fs::path>{at("requirements.txt"), at("more.txt"), at("script.sh")}));
    EXPECT_EQ(inputs.python.interpreter->major, 3);
    EXPECT_EQ(inputs.working_directory, fs::current_path());
    EXPECT_FALSE(inputs.environment.contains("PIP_TARGET"));
    EXPECT_FALSE(inputs.environment.contains("UV_NO_VERIFY_HASHES"));
    EXPECT_EQ(inputs.environment.at("PYTHONNOUSERSITE"), "1");
}

TEST_F(InputsTest, OfACondaEnvironment) {
    conda("channels: [a]\ndependencies:\n- python\n- pip:\n  - six\n");
    options_.conda.requirements = {at("more.txt")};
    const auto inputs = good(check_inputs(options_));
    EXPECT_EQ(inputs.mode, "conda");
    EXPECT_EQ(inputs.files, (std::vector<fs::path>{at("env.yml"), at("more.txt")}));
    ASSERT_EQ(inputs.kept.size(), 2U);
    EXPECT_EQ(inputs.kept[1].content, "iniconfig\n");
    ASSERT_TRUE(inputs.conda);
    EXPECT_EQ(texts_of(inputs.conda->pip), (Texts{"six", "-r " + at("more.txt")}));
    EXPECT_FALSE(inputs.python.interpreter) << "it brings its own";
}

TEST_F(InputsTest, OfALock) {
    options_.spec = test::data_directory / "lockfiles/pixi-v4-python.lock";
    options_.python.clear();
    options_.conda.requirements = {at("requirements.txt")};
    const auto inputs = good(check_inputs(options_));
    ASSERT_TRUE(inputs.locked);
    EXPECT_EQ(inputs.locked->packages.size(), conda::this_subdir() == "linux-aarch64" ? 21U : 22U);
    ASSERT_EQ(inputs.more_requirements.size(), 1U);
    EXPECT_EQ(inputs.more_requirements[0].file, at("requirements.txt"));
    EXPECT_EQ(inputs.files, (std::vector<fs::path>{options_.spec, at("requirements.txt"), at("more.txt")}));
    options_.conda.environment = "absent";
    EXPECT_NE(refused(check_inputs(options_)), "");
}

TEST_F(InputsTest, WhatAPreInstallScriptMayMakeNeedNotBeThere) {
    conda("dependencies:\n- pip:\n  - -r missing.txt\n");
    EXPECT_NE(refused(check_inputs(options_)), "");
    options_.pre_install = at("script.sh");
    options_.conda.requirements = {at("more.txt")};
    EXPECT_EQ(good(check_inputs(options_)).files,
              (std::vector<fs::path>{at("env.yml"), at("more.txt"), at("script.sh")}));
}

TEST_F(InputsTest, ASitesChannelsAreForFilesThatNameNone) {
    auto& site = options_.site;
    site.channels = {{"usual", ""}};
    site.first_channels = {{"first", ""}};
    site.last_channels = {{"last", ""}};
    site.machine_channels = {{"of the machine", ""}};
    conda("dependencies: [python]\n");
    const auto inputs = good(check_inputs(options_));
    EXPECT_EQ(texts_of(inputs.conda_config.channels), (Texts{"first", "usual", "last"}));
    EXPECT_EQ(texts_of(inputs.conda_config.site_channels), Texts{"of the machine"});
    conda("channels: [own]\ndependencies: [python]\n");
    EXPECT_TRUE(good(check_inputs(options_)).conda_config.channels.empty());
}

TEST_F(InputsTest, ASitesChannelsYieldToTheUsersUnlessTheyAreForced) {
    conda("dependencies: [python]\n");
    options_.conda.use_config = true;
    options_.site.channels = {{"usual", ""}};
    EXPECT_EQ(texts_of(good(check_inputs(options_)).conda_config.channels), Texts{"mine"});
    options_.site.channels_forced = true;
    EXPECT_EQ(texts_of(good(check_inputs(options_)).conda_config.channels), Texts{"usual"});
}

TEST_F(InputsTest, WrapperPathsOfTheSiteMayBeMissing) {
    conda("dependencies: [python]\n");
    options_.wrapper_paths = {"tools", at("env/more")};
    options_.site.wrapper_paths = {"site", "tools"};
    const auto inputs = good(check_inputs(options_));
    EXPECT_EQ(inputs.wrapper_paths, (Texts{"bin", "tools", "more", "site"}));
    EXPECT_EQ(inputs.optional_wrapper_paths, Texts{"site"});
    options_.site.wrapper_paths = {"../outside"};
    EXPECT_NE(refused(check_inputs(options_)), "");
}

TEST_F(InputsTest, SourceDateEpochIsSecondsOrNothing) {
    conda("dependencies: [python]\n");
    const struct {
        const char* text;
        std::optional<std::uint32_t> expected;
    } cases[] = {{"", std::nullopt}, {"0", 0}, {"1700000000", 1'700'000'000}, {"4294967295", 4'294'967'295}};
    for (const auto& [text, expected] : cases) {
        setenv("SOURCE_DATE_EPOCH", text, 1);
        EXPECT_EQ(good(check_inputs(options_)).source_date_epoch, expected) << text;
    }
    for (const char* text : {"4294967296", "-1", "-18446744073709551615", "12x", "now"}) {
        setenv("SOURCE_DATE_EPOCH", text, 1);
        EXPECT_EQ(refused(check_inputs(options_)), "invalid SOURCE_DATE_EPOCH") << text;
    }
}

TEST_F(InputsTest, OfRequirementsForCondasPython) {
    options_.spec = at("requirements.txt");
    options_.python = "conda:3.12";
    options_.site.channels = {{.text = "of-site"}};
    for (const char* base : {"host", "docker://debian:13"}) {
        options_.settings.base.reference = base;
        const auto inputs = good(check_inputs(options_));
        EXPECT_FALSE(inputs.requirements);
        ASSERT_EQ(inputs.conda->dependencies.size(), 2U);
        EXPECT_EQ(inputs.conda->dependencies[0].spec.to_string(), "python =3.12");
        EXPECT_EQ(inputs.conda->dependencies[1].spec.to_string(), "pip");
        ASSERT_EQ(inputs.more_requirements.size(), 1U);
        EXPECT_EQ(inputs.more_requirements[0].file, at("requirements.txt"));
        EXPECT_EQ(inputs.more_requirements[0].read.files.size(), 2U);
        EXPECT_EQ(inputs.files, (std::vector<fs::path>{at("requirements.txt"), at("more.txt")}));
        EXPECT_EQ(texts_of(inputs.conda_config.channels), Texts{"of-site"});
        EXPECT_EQ(inputs.mode, "conda");
    }
}

TEST_F(InputsTest, AConfiguredPythonIsNotForCondaEnvironments) {
    options_.spec = at("env.yml"); // `python` is set, but not typed
    EXPECT_TRUE(good(check_inputs(options_)).conda);
}

TEST_F(InputsTest, OptionsThatDoNotFitAreRefused) {
    using Change = std::function<void(BuildOptions&)>;
    const auto script = at("script.sh"), in_prefix = at("env/there");
    const struct {
        const char* spec;
        Change change;
        const char* message;
    } cases[] = {
        {"requirements.txt", [&](auto& o) { o.conda.requirements = {at("more.txt")}; },
         "-r is only for conda environments"},
        {"requirements.txt", [](auto& o) { o.conda.cuda = "12"; }, "--cuda is only for conda environments"},
        {"requirements.txt", [](auto& o) { o.conda.environment = "x"; },
         "--environment selects a part of a pixi manifest or a pixi lock file"},
        {"env.yml", [](auto& o) { o.conda.environment = "x"; },
         "--environment selects a part of a pixi manifest or a pixi lock file"},
        {"env.yml", [](auto& o) { o.conda.categories = {"dev"}; },
         "--category selects a part of a conda-lock file"},
        {"env.yml", [](auto& o) { o.python_typed = true; }, "--python is only for pip requirements"},
        {"env.yml", [](auto& o) { o.bundle_python = true; }, "--bundle-python is only for pip requirements"},
        {"env.yml", [&](auto& o) { o.conda.requirements = {at("software")}; },
         "cannot read the requirements"},
        {"env.yml", [](auto& o) { o.settings.base.isolate = true; }, "--isolate needs a base image"},
        {"requirements.txt", [](auto& o) { o.python = "conda", o.system_site_packages = true; },
         "--system-site-packages needs a Python of the host or of a base"},
        {"requirements.txt", [](auto& o) { o.settings.base.reference = "x", o.bundle_python = true; },
         "--bundle-python is only for interpreters of the host"},
        {"env.yml", [&](auto& o) { o.pre_install = at("missing"); },
         "cannot read the script for --pre-install"},
        {"env.yml", [&](auto& o) { o.post_install = at("software"); },
         "cannot read the script for --post-install"},
        {"env.yml", [&](auto& o) { o.environ_script = at("missing"); },
         "cannot read the script for --environ"},
        {"env.yml", [&](auto& o) { o.log_copy = in_prefix; }, "this file is inside the prefix"},
        {"env.yml", [&](auto& o) { o.staging_parent = in_prefix; },
         "the staging directory is inside the prefix"},
    };
    for (const auto& one : cases) {
        auto options = options_;
        options.spec = at(one.spec);
        if (options.spec.extension() == ".yml") options.python.clear();
        good(check_inputs(options));
        one.change(options);
        EXPECT_EQ(refused(check_inputs(options)), one.message);
    }
}

TEST_F(InputsTest, OfSoftwareOnDisk) {
    options_.wrapper_paths = {"extra", at("software/bin/tool")};
    auto inputs = good(check_wrap(options_, at("software/../software"), false));
    EXPECT_EQ(inputs.wrap_source, at("software"));
    EXPECT_EQ(inputs.mask, "");
    EXPECT_EQ(inputs.mode, "wrapdisk");
    EXPECT_EQ(inputs.wrapper_paths, (Texts{"bin", "extra", "bin/tool"}));
    EXPECT_EQ(good(check_wrap(options_, at("software"), true)).mask, at("software"));

    EXPECT_EQ(refused(check_wrap(options_, at("missing"), false)), "cannot use the software's directory");
    EXPECT_EQ(refused(check_wrap(options_, at("script.sh"), false)), "cannot use the software's directory");
    options_.wrapper_paths = {"sbin"};
    EXPECT_EQ(refused(check_wrap(options_, at("software"), false)),
              "the software has no such directory or program");
    options_.post_install = at("script.sh"); // may make it
    good(check_wrap(options_, at("software"), false));
    options_.prefix = at("software/env");
    EXPECT_EQ(refused(check_wrap(options_, at("software"), false)),
              "the prefix and the software's directory must not contain each other");
}

TEST_F(InputsTest, OfAnInstallationByTykky) {
    directory_.write("tykky/common.sh", "");
    directory_.write("tykky/share/conf.yaml",
                     "env_name: env1\nsqfs_image: img.sqfs\ninstallation_path: /CSC_TYKKY_x/\nmode: venv\n"
                     "wrapper_paths: [/CSC_TYKKY_x/tools]\n");
    const auto command = "mksquashfs '" + at("software") + "' '" + at("tykky/img.sqfs") +
                         "' -quiet -no-progress -comp zstd >/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0);
    const auto inputs = good(check_import(options_, at("tykky")));
    EXPECT_EQ(inputs.mode, "venv");
    EXPECT_EQ(inputs.mask, "/CSC_TYKKY_x");
    EXPECT_EQ(inputs.wrapper_paths, (Texts{"bin", "tools"}));
    EXPECT_EQ(inputs.optional_wrapper_paths, Texts{"tools"});
    ASSERT_TRUE(inputs.tykky);
    EXPECT_EQ(inputs.files, inputs.tykky->records);
    options_.prefix = at("tykky/new");
    EXPECT_EQ(refused(check_import(options_, at("tykky"))),
              "the prefix and the tykky installation must not contain each other");
}

TEST_F(InputsTest, OfProgramsInAContainer) {
    EXPECT_EQ(refused(check_wrap_container(options_)), "-w/--wrapper-paths is missing");
    options_.wrapper_paths = {"/opt/tool/bin/", "/usr/../usr/bin/tool"};
    const auto inputs = good(check_wrap_container(options_));
    EXPECT_EQ(inputs.mode, "wrapcont");
    EXPECT_EQ(inputs.programs, (Texts{"/opt/tool/bin", "/usr/bin/tool"}));
    EXPECT_EQ(inputs.wrapper_paths, Texts{"bin"});
    options_.wrapper_paths = {"bin"};
    EXPECT_EQ(refused(check_wrap_container(options_)), "the path is not absolute");
}

TEST_F(InputsTest, OfAnUpdate) {
    manifest::Manifest previous;
    previous.prefix = at("env");
    previous.settings.base.file = "/some.sqfs";
    previous.settings.binds = {{.source = "/a", .target = "/b"}};
    previous.wrapper_paths = {"bin", "old"};
    options_.wrapper_paths = {"new"};
    options_.conda.requirements = {at("requirements.txt")};
    const struct {
        nlohmann::json build;
        const char* mode;
    } cases[] = {{{{"conda_packages", 3}}, "conda"},
                 {{{"source", "/x"}}, "wrapdisk"},
                 {nlohmann::json::object(), "venv"}};
    for (const auto& [build, mode] : cases) {
        previous.build = build;
        const auto inputs = good(check_update(options_, previous));
        EXPECT_EQ(inputs.mode, mode);
        EXPECT_EQ(inputs.prefix, previous.prefix);
        EXPECT_EQ(inputs.settings.base.file, previous.settings.base.file);
        EXPECT_EQ(inputs.settings.binds, previous.settings.binds);
        EXPECT_EQ(inputs.wrapper_paths, (Texts{"bin", "old", "new"}));
        EXPECT_EQ(inputs.files, (std::vector<fs::path>{at("requirements.txt"), at("more.txt")}));
        EXPECT_EQ(inputs.spec, "");
    }
    options_.spec = at("env.yml");
    options_.python.clear();
    const auto of_conda = good(check_update(options_, previous));
    EXPECT_EQ(of_conda.mode, "conda");
    EXPECT_EQ(texts_of(of_conda.conda->pip), Texts{"-r " + at("requirements.txt")});
    EXPECT_TRUE(of_conda.more_requirements.empty()) << "they would be installed twice";
    EXPECT_EQ(of_conda.files, (std::vector<fs::path>{at("env.yml"), at("requirements.txt"), at("more.txt")}));
}

} // namespace

} // namespace containerize::inputs

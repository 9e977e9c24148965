#include "../good.h"
#include "build/list_format.h"

#include <gtest/gtest.h>

namespace containerize::build {
namespace {

using spec::SpecKind;

Result<SpecKind> chosen(ListFormats possible, const std::string& name, const std::string& output = {}) {
    return choose_format({.name = name, .output = output}, possible, "this", "file");
}

TEST(ListFormat, IsTheOneThatTheUserNames) {
    EXPECT_EQ(test::good(chosen(formats_of_conda_lock(), "pixi", "conda-lock.yml")), SpecKind::pixi_lock);
    EXPECT_EQ(test::good(chosen(formats_of_pip_export(), "requirements.txt")), SpecKind::requirements);
    EXPECT_EQ(to_string(test::error_of(chosen(formats_of_conda_lock(), "pylock"))),
              "file: this cannot be written in the format pylock\nPossible formats: own, explicit, "
              "conda-lock, pixi.");
    EXPECT_EQ(to_string(test::error_of(chosen(formats_of_pip_lock(), "yaml"))),
              "unknown format 'yaml'\nPossible formats: pylock.");
}

TEST(ListFormat, IsToldByTheNameOfTheFile) {
    const auto of_conda = [](const std::string& output) {
        return test::good(chosen(formats_of_conda_export(), "", output));
    };
    EXPECT_EQ(of_conda(""), SpecKind::lock);
    EXPECT_EQ(of_conda("a/env.lock"), SpecKind::lock);
    EXPECT_EQ(of_conda("a/pixi.lock"), SpecKind::pixi_lock);
    EXPECT_EQ(of_conda("gpu.conda-lock.yml"), SpecKind::conda_lock);
    EXPECT_EQ(of_conda("x.txt"), SpecKind::conda_explicit);
    EXPECT_EQ(of_conda("environment.yml"), SpecKind::environment_yaml);
    const auto of_pip = [](const std::string& output) {
        return test::good(chosen(formats_of_pip_export(), "", output));
    };
    EXPECT_EQ(of_pip(""), SpecKind::pylock);
    EXPECT_EQ(of_pip("pylock.gpu.toml"), SpecKind::pylock);
    EXPECT_EQ(of_pip("x.txt"), SpecKind::requirements);
    EXPECT_EQ(of_conda("conda-lock.yaml"), SpecKind::conda_lock);
    for (const auto* name : {"env.yml", "my.yaml"}) {
        EXPECT_EQ(test::error_of(chosen(formats_of_conda_export(), "", name)).what,
                  "this name does not tell the format");
        EXPECT_EQ(test::good(chosen(formats_of_conda_export(), "own", name)), SpecKind::lock);
    }
    EXPECT_EQ(to_string(test::error_of(chosen(formats_of_pip_lock(), "", "a/x.txt"))),
              "x.txt: this name does not tell the format\nGive --format: pylock.");
    EXPECT_EQ(test::error_of(chosen(formats_of_conda_export(), "", "requirements.txt")).fault, Fault::input);
    const auto error = test::error_of(chosen(formats_of_pip_lock(), "", "a/pixi.lock"));
    EXPECT_EQ(error.fault, Fault::input);
    EXPECT_EQ(to_string(error), "file: this cannot be written in the format that the name of pixi.lock "
                                "means: a pixi lock file\nPossible "
                                "formats: pylock. --format chooses one of them for a file of any name.");
}

} // namespace
} // namespace containerize::build

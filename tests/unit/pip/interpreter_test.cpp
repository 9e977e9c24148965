#include "../good.h"
#include "../temporary.h"
#include "core/filesystem.h"
#include "fake_python.h"
#include "launch/launch_plan.h"
#include "pip/interpreter.h"
#include "pip/venv.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::pip {

namespace {

using test::fake_python;
using test::TemporaryDirectory;

Environment with_path(const fs::path& directory) {
    return {{"PATH", directory.string() + ":/usr/bin:/bin"}};
}

std::string message(const Result<Interpreter>& result) {
    return result ? "no error" : to_string(result.error());
}

TEST(Interpreter, IsAskedWhatItIs) {
    const TemporaryDirectory directory;
    const auto program = fake_python(directory, "bin/python3", "3.12.4", "1 0 1");
    const auto found = choose_interpreter({}, with_path(program.parent_path()));
    ASSERT_TRUE(found) << message(found);
    EXPECT_EQ(found->executable, "/real/python");
    EXPECT_EQ(found->base_prefix, "/real");
    EXPECT_EQ(found->version, "3.12.4");
    EXPECT_EQ(found->minor, 12);
    EXPECT_TRUE(found->has_venv);
    EXPECT_FALSE(found->has_ensurepip);
    EXPECT_TRUE(found->has_pip);
}

TEST(Interpreter, RealOneAnswers) {
    const auto found = choose_interpreter("/usr/bin/python3", current_environment());
    ASSERT_TRUE(found) << message(found);
    EXPECT_EQ(found->major, 3);
    EXPECT_TRUE(found->executable.is_absolute());
    EXPECT_TRUE(fs::exists(found->standard_library / "os.py"));
}

TEST(Interpreter, IsFoundByVersion) {
    const TemporaryDirectory directory;
    fake_python(directory, "bin/python3", "3.12.4");
    fake_python(directory, "bin/python3.9", "3.9.1");
    const auto environment = with_path(directory / "bin");
    EXPECT_EQ(choose_interpreter("3.9", environment)->version, "3.9.1");
    EXPECT_EQ(choose_interpreter("3", environment)->version, "3.12.4");
    EXPECT_TRUE(message(choose_interpreter("3.77", environment)).contains("python3.77 is not on PATH"));
}

TEST(Interpreter, WrappersAreNeverTaken) {
    const TemporaryDirectory directory;
    directory.write(fs::path("env") / launch::manifest_name, "{}");
    const auto wrapper = fake_python(directory, "env/bin/python3", "3.12.4");
    fake_python(directory, "bin/python3", "3.10.0");
    const std::string path = (directory / "env/bin").string() + ":" + (directory / "bin").string();
    EXPECT_EQ(choose_interpreter({}, {{"PATH", path + ":/usr/bin:/bin"}})->version, "3.10.0");
    const auto refused = message(choose_interpreter(wrapper.string(), with_path("/")));
    EXPECT_TRUE(refused.contains("belongs to the installation " + (directory / "env").string())) << refused;
}

TEST(Interpreter, UnfitOnesAreRefused) {
    const TemporaryDirectory directory;
    const auto old = fake_python(directory, "old", "3.7.17");
    const auto two = fake_python(directory, "two", "2.7.18");
    const auto lying = fake_python(directory, "bin/python3.9", "3.11.2");
    const auto broken = directory.write("broken", "#!/bin/sh\nexit 3\n");
    chmod(broken.c_str(), 0755);
    const auto text = directory.write("text", "x");
    const auto environment = with_path(directory / "bin");
    const std::pair<std::string, std::string> cases[] = {
        {old, "this Python is too old: its version is 3.7.17"},
        {two, "this Python is too old: its version is 2.7.18"},
        {"3.9", "this Python is 3.11.2, not 3.9"},
        {broken, "this is not a working Python 3"},
        {text, "this is not a Python that can be run"},
        {directory.path(), "this is not a Python that can be run"},
        {"nosuch", "this is not a Python that can be run"},
    };
    for (const auto& [wanted, expected] : cases) {
        const auto result = choose_interpreter(wanted, environment);
        EXPECT_TRUE(message(result).contains(expected)) << wanted << ": " << message(result);
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().fault, Fault::input) << wanted;
    }
}

Interpreter without_ensurepip(const fs::path& executable) {
    return {.executable = executable,
            .base_prefix = {},
            .standard_library = {},
            .version = "3.11.2",
            .major = 3,
            .minor = 11,
            .has_venv = true,
            .has_ensurepip = false,
            .has_pip = false};
}

TEST(Venv, NeedsAWayToGetPip) {
    auto interpreter = without_ensurepip("/usr/bin/python3");
    EXPECT_TRUE(test::error_of(check_venv(interpreter, std::nullopt)).hint.contains("python3-venv"));
    EXPECT_TRUE(check_venv(interpreter, "/usr/bin/uv"));
    interpreter.has_pip = true;
    EXPECT_TRUE(check_venv(interpreter, std::nullopt));
    interpreter.has_venv = false;
    EXPECT_FALSE(check_venv(interpreter, "/usr/bin/uv"));
}

TEST(Venv, GetsItsPipWhateverPipIsTold) {
    const TemporaryDirectory directory;
    const auto program = directory.write("python", R"(#!/bin/sh
case "$*" in
*" config list") [ "$PIP_CONFIG_FILE" = /dev/null ] || echo "global.target='/elsewhere'" ;;
*" install "*) echo "$* $PIP_CONFIG_FILE" > called ;;
esac
)");
    chmod(program.c_str(), 0755);
    auto interpreter = without_ensurepip(program);
    interpreter.has_pip = true;
    ASSERT_TRUE(make_venv({.interpreter = interpreter,
                           .uv = std::nullopt,
                           .prefix = directory.path(),
                           .environment = with_path("/bin"),
                           .in_child = {}}));
    EXPECT_EQ(read_file(directory / "called").value_or("none"), "-m pip --python " +
                                                                    (directory / "bin/python").string() +
                                                                    " install --no-compile pip /dev/null\n");
}

} // namespace

} // namespace containerize::pip

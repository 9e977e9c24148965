#include "../good.h"
#include "../temporary.h"
#include "fake_python.h"
#include "pip/python_choice.h"

#include <optional>

#include <gtest/gtest.h>

namespace containerize::pip {

namespace {

using test::fake_python;
using test::TemporaryDirectory;

struct Expected {
    std::string there; ///< "NAME VERSION HAS" of the host's programs; empty: none
    std::string wanted;
    bool of_host;
    std::string version; ///< of conda's
    std::string reason;
    bool uv = false;
};

TEST(PythonChoice, IsTheHostsWhereItFitsElseCondas) {
    const std::string all = "1 1 1", bare = "1 0 0", no_venv = "0 1 1";
    const Expected cases[] = {
        // what is on PATH, --python, result
        {"python3 3.11.2 " + all, "", true, "", "python3 on PATH"},
        {"python3 3.8.0 " + all, "", true, "", "python3 on PATH"},
        {"python3 3.11.2 " + all, "3", true, "", "python3 on PATH"},
        {"python3.12 3.12.4 " + all, "3.12", true, "", "python3.12 on PATH"},
        {"python3 3.11.2 " + bare, "", true, "", "python3 on PATH", true},
        {"", "", false, "", "python3 is not on PATH"},
        {"", "3.12", false, "3.12", "python3.12 is not on PATH"},
        {"python3 3.11.2 " + all, "3.12", false, "3.12", "python3.12 is not on PATH"},
        {"python3 3.12.4 " + all, "3.12.4", false, "3.12.4", "python3.12.4 is not on PATH"},
        {"python3.12 3.11.2 " + all, "3.12", false, "3.12",
         "BIN/python3.12: this Python is 3.11.2, not 3.12"},
        {"python3 3.6.8 " + all, "", false, "", "BIN/python3: this Python is too old: its version is 3.6.8"},
        {"python3 3.6.8 " + all, "3", false, "3",
         "BIN/python3: this Python is too old: its version is 3.6.8"},
        {"python3 3.11.2 " + no_venv, "", false, "", "/real/python: this Python has no venv module"},
        {"python3 3.11.2 " + bare, "", false, "",
         "/real/python: this Python cannot create an environment with pip: it has neither ensurepip nor pip, "
         "and uv is not on PATH"},
        {"python3 3.11.2 " + all, "conda", false, "", "requested"},
        {"python3.12 3.12.4 " + all, "conda:3.12", false, "3.12", "requested"},
        {"python3 3.11.2 " + all, "BIN/python3", true, "", "requested"},
    };
    for (const auto& one : cases) {
        SCOPED_TRACE(one.there + " | " + one.wanted);
        const TemporaryDirectory directory;
        const auto bin = (directory / "bin").string();
        const auto filled = [&](std::string text) {
            if (const auto at = text.find("BIN"); at != text.npos) text.replace(at, 3, bin);
            return text;
        };
        if (!one.there.empty()) {
            const auto first = one.there.find(' '), second = one.there.find(' ', first + 1);
            fake_python(directory, "bin/" + one.there.substr(0, first),
                        one.there.substr(first + 1, second - first - 1), one.there.substr(second + 1));
        }
        const auto path_of_uv = one.uv ? std::optional<std::filesystem::path>("/usr/bin/uv") : std::nullopt;
        const auto choice = choose_python(filled(one.wanted), path_of_uv, {{"PATH", bin}});
        ASSERT_TRUE(choice) << to_string(choice.error());
        EXPECT_EQ(choice->interpreter.has_value(), one.of_host);
        EXPECT_EQ(choice->version, one.version);
        EXPECT_EQ(choice->reason, filled(one.reason));
    }
}

TEST(PythonChoice, PathsAndVersionsThatCannotBeAreRefused) {
    const TemporaryDirectory directory;
    fake_python(directory, "bin/python3.6", "3.6.8", "1 1 1");
    fake_python(directory, "bin/bare", "3.11.2", "0 0 0");
    const auto bin = directory / "bin";
    const std::pair<std::string, std::string> cases[] = {
        {"3.6", "Python 3.6 is too old"},
        {"2", "Python 2 is too old"},
        {"conda:3.7", "Python 3.7 is too old"},
        {"conda:", "conda:: invalid version of Python: ''"},
        {"conda:latest", "conda:latest: invalid version of Python: 'latest'"},
        {"3.", "this is not a Python that can be run"},
        {"3..12", "this is not a Python that can be run"},
        {(bin / "python3.6").string(), "this Python is too old: its version is 3.6.8"},
        {(bin / "bare").string(), "this Python has no venv module"},
        {(bin / "none").string(), "this is not a Python that can be run"},
    };
    for (const auto& [wanted, expected] : cases) {
        const auto error = test::error_of(choose_python(wanted, std::nullopt, {{"PATH", bin.string()}}));
        EXPECT_TRUE(to_string(error).contains(expected)) << wanted << ": " << to_string(error);
        EXPECT_EQ(error.fault, Fault::input) << wanted;
    }
}

TEST(PythonChoice, DefaultsAreChecked) {
    for (const char* good : {"3", "3.12", "3.12.4", "/opt/python/bin/python3", "conda", "conda:3.12"})
        EXPECT_TRUE(check_default_python(good)) << good;
    for (const char* bad : {"", "bin/python3", "2.7", "conda:", "conda=3.12", "latest"})
        EXPECT_FALSE(check_default_python(bad)) << bad;
}

TEST(PythonChoice, OnlyTheDistributionsOwnIsExpectedOnOtherNodes) {
    const auto own = choose_interpreter("/usr/bin/python3", current_environment());
    ASSERT_TRUE(own) << to_string(own.error());
    EXPECT_EQ(warning_about(*own), "");
    auto other = *own;
    other.executable = "/opt/python/bin/python3.12";
    EXPECT_TRUE(warning_about(other).contains("needs /opt/python/bin/python3.12, which is not"))
        << warning_about(other);
}

} // namespace

} // namespace containerize::pip

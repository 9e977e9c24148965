#include "../good.h"
#include "../temporary.h"
#include "core/filesystem.h"
#include "pip/installer.h"
#include "pip/pip_configuration.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::pip {

namespace {

using test::TemporaryDirectory;

const std::optional<fs::path> uv = "/opt/uv";

spec::Requirements requirements_of(const std::vector<std::string>& texts) {
    spec::Requirements requirements;
    for (const auto& text : texts)
        requirements.lines.push_back({.file = "r.txt", .number = 1, .text = text});
    return requirements;
}

Choice choose(const std::string& configuration, const std::vector<std::string>& requirements = {"numpy"},
              const Environment& environment = {}, Installer wanted = Installer::automatic) {
    auto choice = choose_installer(wanted, uv, configuration, requirements_of(requirements), environment);
    EXPECT_TRUE(choice);
    return choice ? *choice : Choice{};
}

struct Case {
    std::string configuration;
    std::string requirement;
    Installer expected;
};

TEST(Installer, UvIsTakenOnlyWhereNothingIsLost) {
    const Case cases[] = {
        {"", "numpy", Installer::uv},
        {"global.index-url='https://host/simple'\n", "numpy", Installer::uv},
        {"global.timeout='60'\n:env:.disable-pip-version-check='1'\n", "numpy", Installer::uv},
        {"download.platform='any'\n", "numpy", Installer::uv},
        {":env:.user='0'\n", "numpy", Installer::uv},
        {":env:.require-virtualenv='0'\n:env:.config-file='/site/pip.conf'\n", "numpy", Installer::uv},
        {"global.trusted-host='host'\n", "numpy", Installer::pip},
        {"global.no-index='true'\n", "numpy", Installer::pip},
        {"install.no-binary=':all:'\n", "numpy", Installer::pip},
        {":env:.pre='1'\n", "numpy", Installer::pip},
        {"global.proxy='http://host:1'\n", "numpy", Installer::pip},
        {"", "--extra-index-url https://host/simple", Installer::uv},
        {"", "-r more.txt", Installer::uv},
        {"", "numpy --hash=sha256:ab", Installer::uv},
        {"", "numpy; python_version > '3.8'", Installer::uv},
        {"", "--trusted-host host", Installer::pip},
        {"", "--pre", Installer::pip},
        {"", "--use-feature=fast-deps", Installer::pip},
        {"", "numpy --config-settings=a=b", Installer::pip},
    };
    for (const auto& [configuration, requirement, expected] : cases)
        EXPECT_EQ(choose(configuration, {requirement}).installer, expected) << configuration << requirement;
}

TEST(Installer, IsTheOneAskedFor) {
    EXPECT_EQ(choose("", {"x"}, {}, Installer::pip).installer, Installer::pip);
    EXPECT_EQ(choose("", {"x"}, {}, Installer::pip_tree).installer, Installer::pip);
    const auto forced = choose("global.trusted-host='host'\n", {"x"}, {}, Installer::uv);
    EXPECT_EQ(forced.installer, Installer::uv);
    EXPECT_EQ(forced.warning, "uv does not support your pip setting 'trusted-host'");
    EXPECT_EQ(choose("global.pre='1'\n").reason, "pip: uv does not support your pip setting 'pre'");
    const auto none = choose_installer(Installer::automatic, std::nullopt, "", {}, {});
    EXPECT_EQ(none->reason, "pip: uv is not on PATH");
    EXPECT_EQ(test::error_of(choose_installer(Installer::uv, std::nullopt, "", {}, {})).what,
              "uv is not on PATH");
}

TEST(Installer, SettingsOfPipAreTranslated) {
    const auto choice = choose(":env:.index-url='https://env/simple'\n"
                               "global.cert='/ca.pem'\n"
                               "global.extra-index-url='https://a/simple\\nhttps://b/simple'\n"
                               "global.find-links='/one /two'\n"
                               "global.index-url='https://global/simple'\n"
                               "install.index-url='https://install/simple'\n");
    // Environment variables take precedence over the command's section, and that over the global one.
    EXPECT_EQ(choice.for_uv.at("UV_DEFAULT_INDEX"), "https://env/simple");
    EXPECT_EQ(choice.for_uv.at("UV_INDEX"), "https://a/simple https://b/simple");
    EXPECT_EQ(choice.for_uv.at("UV_FIND_LINKS"), "/one,/two");
    EXPECT_EQ(choice.for_uv.at("SSL_CERT_FILE"), "/ca.pem");
    EXPECT_EQ(choice.for_uv.at("UV_INDEX_STRATEGY"), "unsafe-best-match");
}

TEST(Installer, WhatTheUserSetForUvStays) {
    const auto choice =
        choose("global.index-url='https://pip/simple'\n", {"x"},
               {{"UV_DEFAULT_INDEX", "https://uv/simple"}, {"UV_INDEX_STRATEGY", "first-index"}});
    EXPECT_FALSE(choice.for_uv.contains("UV_DEFAULT_INDEX"));
    EXPECT_FALSE(choice.for_uv.contains("UV_INDEX_STRATEGY"));
}

TEST(Installer, OneHashDemandsAll) {
    EXPECT_EQ(choose("", {"numpy --hash=sha256:ab", "idna"}).for_uv.at("UV_REQUIRE_HASHES"), "true");
    EXPECT_FALSE(choose("", {"numpy"}).for_uv.contains("UV_REQUIRE_HASHES"));
}

TEST(Installer, CertificatesOfRequestsAreUsed) {
    EXPECT_EQ(choose("", {"x"}, {{"REQUESTS_CA_BUNDLE", "/site.pem"}}).for_uv.at("SSL_CERT_FILE"),
              "/site.pem");
}

Target target_of(const fs::path& python) {
    return {.python = python, .pip = {}, .environment = {{"PATH", "/usr/bin:/bin"}}, .in_child = {}};
}

Choice by(Installer installer, const fs::path& program = {}) {
    return {.installer = installer, .uv = program, .for_uv = {}, .reason = {}, .warning = {}};
}

TEST(Installer, SettingsThatMisdirectPipAreLeftOut) {
    const auto settings = settings_of_install("global.index-url='https://h/simple'\n"
                                              "global.find-links='a\\nb'\n"
                                              "install.target='/elsewhere'\n"
                                              "install.no-deps='true'\n"
                                              "download.timeout='3'\n"
                                              ":env:.dry-run='1'\n"
                                              ":env:.no-deps='false'\n");
    EXPECT_TRUE(misdirect(settings));
    Environment environment = {{"PIP_DRY_RUN", "1"}, {"PIP_NO_DEPS", "false"}, {"PIP_CONFIG_FILE", "x"}};
    pass_without_misdirecting(settings, environment);
    EXPECT_EQ(environment, (Environment{{"PIP_CONFIG_FILE", "/dev/null"},
                                        {"PIP_FIND_LINKS", "a b"},
                                        {"PIP_INDEX_URL", "https://h/simple"},
                                        {"PIP_NO_DEPS", "false"}}));
    EXPECT_FALSE(
        misdirect(settings_of_install("global.index-url='https://h/simple'\ndownload.target='x'\n")));
}

Command asked(const TemporaryDirectory& directory, const std::string& script) {
    const auto program = directory.write("python", "#!/bin/sh\n" + script);
    chmod(program.c_str(), 0755);
    return {.argv = {program.string(), "-m", "pip"}, .environment = Environment{{"PATH", "/usr/bin:/bin"}}};
}

constexpr const char* misdirected = R"(
[ "$PIP_PYTHON" = "$0" ] || exit 1
[ "$PIP_CONFIG_FILE" = /dev/null ] || echo "global.python='/nowhere'"
echo ":env:.python='$PIP_PYTHON'"
echo ":env:.timeout='3'"
)";

TEST(PipConfiguration, IsThatOfTheTargetsPython) {
    const TemporaryDirectory directory;
    const auto found = test::good(configure(asked(directory, misdirected)));
    EXPECT_EQ(found.settings, ":env:.timeout='3'\n");
    EXPECT_EQ(
        found.environment,
        (Environment{{"PATH", "/usr/bin:/bin"}, {"PIP_CONFIG_FILE", "/dev/null"}, {"PIP_TIMEOUT", "3"}}));
}

TEST(PipConfiguration, OfAnOldPipIsUnknown) {
    const TemporaryDirectory directory;
    const auto old = asked(directory, "echo 'ERROR: unknown command \"config\"' >&2; exit 1");
    EXPECT_EQ(test::good(configure(old)).settings, "");
    const auto broken = asked(directory, "echo 'pip.conf is broken' >&2; exit 1");
    EXPECT_EQ(test::error_of(configure(broken)).why, "it printed\n  pip.conf is broken");
    const auto version = asked(directory, "echo 'pip 26.3 from /lib/pip (python 3.11)'");
    EXPECT_EQ(test::error_of(configure(version)).why, "it printed\n  pip 26.3 from /lib/pip (python 3.11)");
}

TEST(Installer, ALockIsInstalledWithoutDependenciesAndOffline) {
    const TemporaryDirectory directory;
    const auto program = directory.write("program", "#!/bin/sh\necho \"$@\" > called\nenv > environment\n");
    chmod(program.c_str(), 0755);
    const auto called = [&] { return *read_file(directory / "called"); };
    const auto environment = [&] { return *read_file(directory / "environment"); };
    InstallRequest request{
        .target = target_of(program), .requirements = "r.txt", .working_directory = directory.path()};
    const auto quietly = [](std::string_view) {};
    ASSERT_TRUE(install(by(Installer::pip), request, quietly));
    EXPECT_TRUE(called().starts_with("-m pip install ")) << called();
    EXPECT_FALSE(called().contains("--no-deps"));
    EXPECT_FALSE(environment().contains("PIP_NO_INDEX"));
    request.dependencies = false;
    request.verified = true;
    request.target.offline = true;
    request.target.pip = "/staging/pip";
    for (const auto installer : {Installer::pip, Installer::uv}) {
        ASSERT_TRUE(install(by(installer, program), request, quietly));
        EXPECT_TRUE(called().ends_with(" -r r.txt --no-deps --require-hashes\n")) << called();
        EXPECT_TRUE(
            called().starts_with(installer == Installer::pip ? "/staging/pip install " : "pip install "))
            << called();
        EXPECT_TRUE(environment().contains("PIP_NO_INDEX=1\n"));
        EXPECT_TRUE(environment().contains("GIT_ALLOW_PROTOCOL=file\n"));
        EXPECT_EQ(environment().contains("UV_OFFLINE=1\n"), installer == Installer::uv);
        EXPECT_EQ(called().contains(" --verify-hashes "), installer == Installer::uv)
            << "uv.toml may switch it off";
    }
}

TEST(Installer, WhatUvSaysThatItInstalled) {
    for (const auto& [line, expected] : {std::pair(" + six==1.16.0", "six 1.16.0"),
                                         {" + demo==1.0 (from file:///a==b/demo.whl)", "demo 1.0"}}) {
        const auto found = installed_by_uv(line);
        ASSERT_TRUE(found);
        EXPECT_EQ(found->name + " " + found->version, expected);
    }
    for (const char* line : {" - six==1.16.0", "Checked 1 package in 4ms", " + ", ""})
        EXPECT_FALSE(installed_by_uv(line)) << line;
}

TEST(Installer, UvListsWhatIsWhereItInstalls) {
    const TemporaryDirectory directory;
    const auto program =
        directory.write("uv", "#!/bin/sh\n[ \"$*\" = 'pip list --python p --format json' ] || exit 1\n"
                              "echo '[{\"name\":\"six\",\"version\":\"1.16.0\"}]'\n");
    chmod(program.c_str(), 0755);
    const auto listed = test::good(list_by_uv(by(Installer::uv, program), target_of("p"), directory.path()));
    ASSERT_EQ(listed.size(), 1U);
    EXPECT_EQ(listed[0].name + "==" + listed[0].version, "six==1.16.0");
    EXPECT_EQ(test::error_of(list_by_uv(by(Installer::uv, program), target_of("other"), {})).what,
              "uv could not list the installed packages");
}

TEST(Installer, FailureHasItsReason) {
    const TemporaryDirectory directory;
    const auto python = directory.write(
        "python", "#!/bin/sh\necho Collecting x\necho 'ERROR: No matching distribution found for x'\n"
                  "echo '[notice] a new release of pip'\nexit 1\n");
    chmod(python.c_str(), 0755);
    std::vector<std::string> details;
    const auto failed = install(by(Installer::pip),
                                {.target = target_of(python),
                                 .requirements = directory / "r.txt",
                                 .working_directory = directory.path()},
                                [&](std::string_view line) { details.emplace_back(line); });
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().what, "pip could not install the requirements");
    EXPECT_EQ(failed.error().why, "it printed\n  ERROR: No matching distribution found for x");
    EXPECT_EQ(failed.error().fault, Fault::failure);
    EXPECT_EQ(details.front(), "Collecting x");
}

/// The error of an installation by a pip that prints this and fails.
Error failure_of_pip(const std::string& output) {
    const TemporaryDirectory directory;
    const auto said = directory.write("said", output);
    const auto python = directory.write("python", "#!/bin/sh\ncat " + said.string() + "\nexit 1\n");
    chmod(python.c_str(), 0755);
    auto failed =
        install(by(Installer::pip),
                {.target = target_of(python), .requirements = "r.txt", .working_directory = directory.path()},
                [](std::string_view) {});
    EXPECT_FALSE(failed);
    return failed.error();
}

TEST(Installer, TheReasonHasAllOfWhatPipSays) {
    const std::string hashes = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n"
                               "    six==1.16.0 from https://host/six.whl:\n"
                               "        Expected sha256 00\n"
                               "             Got        8a\n";
    const std::string shown =
        "it printed\n  ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n      "
        "six==1.16.0 from https://host/six.whl:\n          Expected sha256 00\n               Got        8a";
    EXPECT_EQ(failure_of_pip("Collecting six\n" + hashes + "\n").why, shown);
    EXPECT_EQ(failure_of_pip("ERROR: Exception:\nTraceback (most recent call last):\n"
                             "  File \"x.py\", line 1, in f\n    assert a\n           ^\n"
                             "AssertionError: the wheel has another name\n")
                  .why,
              "it printed\n  ERROR: Exception:\n  AssertionError: the wheel has another name");
    EXPECT_EQ(failure_of_pip("  fatal: repository 'http://host/r/' not found\n"
                             "  × git clone did not run successfully.\n  │ exit code: 128\n")
                  .why,
              "it printed\n    fatal: repository 'http://host/r/' not found\n    × git clone did not run "
              "successfully.");
}

TEST(Installer, AnIndexThatRefusesTheLoginMayBeTheReason) {
    const std::string missing = "ERROR: Could not find a version that satisfies x (from versions: none)\n";
    EXPECT_EQ(failure_of_pip("Looking in indexes: https://pypi.org/simple, https://****@host:8443/simple\n" +
                             missing)
                  .hint,
              "pip reports the same if an index refuses the login. Check the login for host:8443, in the "
              "index URL or in ~/.netrc.");
    EXPECT_EQ(failure_of_pip(missing).hint, "");
    EXPECT_EQ(failure_of_pip("Looking in indexes: https://host/simple\nERROR: (from versions: 1.0)\n").hint,
              "");
}

TEST(Installer, TheCauseThatUvNamesIsShown) {
    const TemporaryDirectory directory;
    const auto uv_program = directory.write(
        "uv-program", "#!/bin/sh\necho 'Resolved 1 package in 2ms'\n"
                      "printf 'error: Failed to download `x==1`\\n  cause: Hash mismatch for `x==1`\\n\\n"
                      "         Expected:\\n           sha256:00\\n'\nexit 1\n");
    chmod(uv_program.c_str(), 0755);
    const auto failed = test::error_of(install(
        by(Installer::uv, uv_program),
        {.target = target_of("python"), .requirements = "r.txt", .working_directory = directory.path()},
        [](std::string_view) {}));
    EXPECT_EQ(failed.why, "it printed\n  error: Failed to download `x==1`\n    cause: Hash mismatch "
                          "for `x==1`\n           Expected:\n             sha256:00");
}

TEST(Installer, NamesAreParsed) {
    EXPECT_EQ(*parse_installer("auto"), Installer::automatic);
    EXPECT_EQ(*parse_installer("uv"), Installer::uv);
    EXPECT_EQ(*parse_installer("pip-tree"), Installer::pip_tree);
    EXPECT_EQ(to_string(parse_installer("conda").error()),
              "unknown installer: 'conda'\nGive auto, pip, uv or pip-tree.");
}

} // namespace

} // namespace containerize::pip

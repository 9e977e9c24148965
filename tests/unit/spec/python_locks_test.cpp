// Locks and projects of Python's own tools.
#include "../good.h"
#include "../temporary.h"
#include "data.h"
#include "spec/conda_environment.h"
#include "spec/locked_lines.h"

#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace containerize::spec {
namespace {

using test::TemporaryDirectory;

struct Parts {
    std::vector<std::string> groups = {}, extras = {};
};

Result<ConvertedFile> converted(const fs::path& file, const Parts& parts = {}) {
    const auto kind = TRY(recognise_supported(file));
    const auto& format = format_of(kind);
    const LockChoice choice{.subdir = "linux-64", .groups = parts.groups, .extras = parts.extras};
    TRY(check_choice(format, file, choice));
    if (!std::holds_alternative<ConvertedReader>(format.reader)) return fail_input("not of Python");
    return std::get<ConvertedReader>(format.reader)(file, choice);
}

/// The lines, without their checksums.
std::vector<std::string> lines_of(const ConvertedFile& file) {
    std::vector<std::string> lines;
    for (const auto& line : file.lines)
        lines.push_back(line.text.substr(0, line.text.find(" --hash=")));
    return lines;
}

std::vector<std::string> lines_in(const fs::path& file, const Parts& parts = {}) {
    return lines_of(test::good(converted(file, parts)));
}

/// The message about a file with this text, without the directory.
std::string refused(const std::string& name, const std::string& text, const Parts& parts = {}) {
    const TemporaryDirectory directory;
    const auto file = directory.write(name, text);
    const auto read = converted(file, parts);
    if (read) return "taken";
    EXPECT_EQ(read.error().fault, Fault::input);
    auto message = to_string(read.error());
    const auto place = directory.path().string() + "/";
    for (std::size_t at = 0; (at = message.find(place)) != message.npos;)
        message.erase(at, place.size());
    return message;
}

std::vector<std::string> lines_of_text(const std::string& name, const std::string& text,
                                       const Parts& parts = {}) {
    const TemporaryDirectory directory;
    return lines_in(directory.write(name, text), parts);
}

const std::string sha(64, 'a');
const std::string git_commit(40, 'c');
const std::string hash = "sha256:" + sha;
const std::string rewrite = "\nRemove it, or write it in a requirements file as pip documents it.";

// --- real files
// ---------------------------------------------------------------------------------------------

const fs::path data = test::data_directory / "python-locks";

using Lines = std::vector<std::string>;

const Lines of_project = {"exceptiongroup==1.3.2 ; python_full_version < '3.11'",
                          "idna==3.20",
                          "markdown-it-py==3.0.0 ; python_full_version < '3.10'",
                          "markdown-it-py==4.3.0 ; python_full_version >= '3.10'",
                          "mdurl==0.1.2",
                          "typing-extensions==4.16.0 ; python_full_version < '3.11'"};

TEST(PythonLocksRealData, OfUv) {
    const auto file = test::good(converted(data / "uv.lock"));
    EXPECT_TRUE(file.complete);
    EXPECT_EQ(file.python.text, ">=3.9");
    EXPECT_EQ(file.python.where, (data / "uv.lock").string() + ":3");
    EXPECT_EQ(lines_of(file), of_project);
    for (const auto& line : file.lines)
        EXPECT_NE(line.text.find(" --hash=sha256:"), std::string::npos) << line.text;
    EXPECT_EQ(lines_in(data / "uv.lock", {.groups = {"Dev"}, .extras = {"all"}}).size(), 10U);
    EXPECT_EQ(to_string(test::error_of(converted(data / "uv.lock", {.groups = {"docs"}}))),
              (data / "uv.lock").string() +
                  ": this file has no group 'docs': it has dev, lint\nGive --group one of these.");
}

TEST(PythonLocksRealData, OfPylock) {
    const auto file = test::good(converted(data / "pylock.toml"));
    EXPECT_EQ(lines_of(file), of_project);
    EXPECT_EQ(file.python.text, ">=3.9");
}

TEST(PythonLocksRealData, OfPoetry) {
    const auto file = test::good(converted(data / "poetry/poetry.lock"));
    const auto lines = lines_of(file);
    EXPECT_EQ(lines.size(), 5U);
    EXPECT_EQ(lines.front(), "exceptiongroup==1.3.2 ; python_version < '3.11'");
    EXPECT_EQ(lines_in(data / "poetry/poetry.lock", {.groups = {"dev"}, .extras = {"net"}}).size(), 8U);
    EXPECT_EQ(to_string(test::error_of(converted(data / "poetry/poetry.lock", {.extras = {"x"}}))),
              (data / "poetry/poetry.lock").string() +
                  ": this file has no extra 'x': it has all, net\nGive --extra one of these.");
}

TEST(PythonLocksRealData, OfPipenv) {
    const auto file = test::good(converted(data / "Pipfile.lock"));
    EXPECT_EQ(lines_of(file), (Lines{"idna==3.20 ; python_version >= '3.9'",
                                     "markdown-it-py==4.3.0 ; python_version >= '3.10'",
                                     "mdurl==0.1.2 ; python_version >= '3.7'"}));
    ASSERT_EQ(file.notes.size(), 1U);
    EXPECT_EQ(file.notes.front(), "'exceptiongroup' is left out, because " +
                                      (data / "Pipfile.lock").string() +
                                      " has no version of it. It is only needed if python_version < '3.11'.");
    EXPECT_EQ(lines_in(data / "Pipfile.lock", {.groups = {"dev"}}).size(), 5U);
    EXPECT_EQ(to_string(test::error_of(converted(data / "Pipfile.lock", {.extras = {"net"}}))),
              (data / "Pipfile.lock").string() +
                  ": --extra selects a part of a poetry lock file, a uv lock file, a pylock file or a "
                  "pyproject file: this is a Pipfile.lock\nLeave it out.");
}

TEST(PythonLocksRealData, OfProject) {
    const auto file = test::good(converted(data / "pyproject.toml"));
    EXPECT_FALSE(file.complete);
    EXPECT_EQ(lines_of(file), (Lines{"idna>=3.6", "exceptiongroup ; python_version < '3.11'",
                                     "colorama ; sys_platform == 'win32'", "markdown-it-py"}));
    const auto all = lines_in(data / "pyproject.toml", {.groups = {"dev", "lint"}, .extras = {"all"}});
    EXPECT_EQ(Lines(all.begin() + 4, all.end()),
              (Lines{"packaging==24.0", "iniconfig==2.0.0", "six", "certifi==2024.2.2"}));
}

// --- pylock
// -------------------------------------------------------------------------------------------------

std::string pylock(const std::string& packages, const std::string& head = "") {
    return "lock-version = \"1.0\"\ncreated-by = \"x\"\n" + head + packages;
}

std::string wheel(const std::string& name, const std::string& more = "") {
    return "[[packages]]\nname = \"" + name + "\"\nversion = \"1.0\"\n" + more +
           "index = \"https://pypi.org/simple\"\nwheels = [{url = \"https://x.org/" + name +
           "-1.0-py3-none-any.whl\", hashes = {sha256 = \"" + sha + "\"}}]\n";
}

TEST(Pylock, ExtrasAndGroupsAreChosen) {
    const auto text = pylock(wheel("a", "marker = \"'net' in extras\"\n") +
                                 wheel("b", "marker = \"'dev' in dependency_groups\"\n") +
                                 wheel("c", "marker = \"'default' in dependency_groups\"\n"),
                             "extras = [\"net\"]\ndependency-groups = [\"dev\"]\ndefault-groups = "
                             "[\"default\"]\nrequires-python = \">=3.8\"\n");
    EXPECT_EQ(lines_of_text("pylock.toml", text), (Lines{"c==1.0"}));
    EXPECT_EQ(lines_of_text("pylock.x.toml", text, {.groups = {"dev"}, .extras = {"Net"}}),
              (Lines{"a==1.0", "b==1.0", "c==1.0"}));
    EXPECT_EQ(refused("pylock.toml", text, {.extras = {"x"}}),
              "pylock.toml: this file has no extra 'x': it has net\nGive --extra one of these.");
    EXPECT_EQ(refused("pylock.toml", pylock(wheel("a")), {.groups = {"x"}}),
              "pylock.toml: this file has no group 'x': it has none\nLeave out --group.");
}

TEST(Pylock, EverySourceIsTaken) {
    const TemporaryDirectory directory;
    fs::create_directories(directory / "project");
    directory.write("files/b-1.0-py3-none-any.whl", "");
    directory.write("a-1.0.tar.gz", "");
    const auto file = directory.write("pylock.toml", pylock(R"([[packages]]
name = "a"
archive = {path = "a-1.0.tar.gz", hashes = {sha256 = ")" + sha +
                                                            R"("}}
[[packages]]
name = "b"
version = "1.0"
wheels = [{path = "files/b-1.0-py3-none-any.whl", hashes = {sha512 = ")" +
                                                            std::string(128, 'b') + R"("}}]
[[packages]]
name = "c"
directory = {path = "project"}
[[packages]]
name = "d"
marker = "python_version < '3.11'"
vcs = {type = "git", url = "https://x.org/d.git", requested-revision = "main", commit-id = ")" +
                                                            git_commit + R"(", subdirectory = "s"}
[[packages]]
name = "e"
version = "1.0"
index = "https://x.org/simple"
sdist = {url = "https://x.org/e-1.0.tar.gz", hashes = {sha256 = ")" +
                                                            sha + R"(", md5 = "1"}}
[[packages]]
name = "f"
version = "1.0"
wheels = [{url = "https://x.org/f-1.0-py3-none-any.whl", hashes = {sha256 = ")" +
                                                            sha + R"("}}]
)"));
    const auto read = test::good(converted(file));
    const auto place = directory.path().string();
    Lines lines;
    for (const auto& line : read.lines)
        lines.push_back(line.text);
    EXPECT_EQ(
        lines,
        (Lines{"--extra-index-url https://x.org/simple", "--find-links " + place + "/files",
               "a @ file://" + place + "/a-1.0.tar.gz#sha256=" + sha,
               "b==1.0 --hash=sha512:" + std::string(128, 'b'), "c @ file://" + place + "/project",
               "d @ git+https://x.org/d.git@" + git_commit + "#subdirectory=s ; python_version < '3.11'",
               "e==1.0 --hash=" + hash, "f @ https://x.org/f-1.0-py3-none-any.whl#sha256=" + sha}));
    EXPECT_TRUE(requirements_of(read, file));
}

TEST(Pylock, AFragmentDoesNotReplaceTheChecksum) {
    const auto line = [](const std::string& url, const std::string& digits = sha) {
        return lines_of_text("pylock.toml", pylock("[[packages]]\nname = \"a\"\narchive = {url = \"" + url +
                                                   "\", hashes = {sha256 = \"" + digits + "\"}}\n"));
    };
    const auto checked = "a @ https://x.org/a.zip#sha256=" + sha;
    EXPECT_EQ(line("https://x.org/a.zip#egg=a"), (Lines{checked + "&egg=a"}));
    EXPECT_EQ(line("https://x.org/a.zip#sha256="), (Lines{checked}));
    EXPECT_EQ(line("https://x.org/a.zip#md5=0&sha256=" + std::string(64, 'b') + "&subdirectory=s"),
              (Lines{checked + "&subdirectory=s"}));
    EXPECT_EQ(line("https://x.org/a.zip", std::string(64, 'A')), (Lines{checked}));
}

TEST(Pylock, OneChecksumOfAFileSuffices) {
    const auto read = [](const std::string& hashes) {
        const TemporaryDirectory directory;
        const auto file =
            directory.write("pylock.toml", pylock("[[packages]]\nname = \"a\"\nversion = \"1\"\nindex = "
                                                  "\"https://pypi.org/simple\"\nsdist = {hashes = {" +
                                                  hashes + "}}\n"));
        return test::good(converted(file)).lines.front().text;
    };
    const std::string sha512(128, 'b');
    EXPECT_EQ(read("md5 = \"0\", sha512 = \"" + sha512 + "\", sha256 = \"" + std::string(64, 'A') + "\""),
              "a==1 --hash=" + hash);
    EXPECT_EQ(read("md5 = \"0\", sha512 = \"" + sha512 + "\""), "a==1 --hash=sha512:" + sha512);
}

TEST(Pylock, MistakesAreShownWithTheirLine) {
    const auto said = [](const std::string& packages) { return refused("pylock.toml", pylock(packages)); };
    EXPECT_EQ(
        refused("pylock.toml", "created-by = 1\n[[packages]]\n"),
        "pylock.toml: this pylock file is incomplete: it has no `lock-version`\nCopy or create it again.");
    EXPECT_EQ(refused("pylock.toml", "lock-version = \"2.0\"\n"),
              "pylock.toml:1: unknown version of the pylock format: '2.0'\nVersion 1 is supported.");
    EXPECT_EQ(refused("pylock.toml", "lock-version = 1\n"), "pylock.toml:1: `lock-version` must be a string");
    EXPECT_EQ(said("packages = 1\n"), "pylock.toml:3: `packages` must be a list of tables");
    EXPECT_EQ(said("[[packages]]\n"), "pylock.toml:3: a package has no `name`");
    EXPECT_EQ(said("[[packages]]\nname = \"a\"\n"),
              "pylock.toml:3: the lock has no file for 'a': it needs `wheels`, `sdist`, `archive`, "
              "`directory` or `vcs`");
    EXPECT_EQ(said(wheel("a b")), "pylock.toml:3: invalid name of a package: 'a b'\nLock it again.");
    EXPECT_EQ(said(wheel("a\\n--index-url x")).substr(0, 44), "pylock.toml:3: invalid name of a package: 'a");
    EXPECT_EQ(said(wheel("a") + wheel("A")),
              "pylock.toml:8: A is listed twice\nLock again, or remove one of them.");
    EXPECT_EQ(said(wheel("a", "marker = \"frob\"\n")),
              "pylock.toml:3: invalid marker 'frob': a variable is unknown");
    EXPECT_EQ(said("[[packages]]\nname = \"a\"\nversion = \"1 --pre\"\nindex = "
                   "\"https://pypi.org/simple\"\nsdist = {hashes = {sha256 = \"" +
                   sha + "\"}}\n"),
              "pylock.toml:3: the lock has no usable version for 'a': 1 --pre\nLock it again.");
    EXPECT_EQ(said("[[packages]]\nname = \"a\"\nversion = \"1\"\nsdist = {name = \"a.zip\", hashes = {frob = "
                   "\"1\"}}\n"),
              "pylock.toml:3: the lock has no checksum for 'a' that pip can verify: it has frob:1\nLock it "
              "again with checksums of kind sha256.");
    const std::string unverifiable =
        "the lock has no checksum for 'a': its download cannot be verified\nLock it again from an index or "
        "channel that has checksums.";
    EXPECT_EQ(said("[[packages]]\nname = \"a\"\nversion = \"1\"\nsdist = {name = \"a.zip\"}\n"),
              "pylock.toml:3: " + unverifiable);
    EXPECT_EQ(said("[[packages]]\nname = \"a\"\narchive = {url = \"https://x.org/a.zip\"}\n"),
              "pylock.toml:5: " + unverifiable);
    EXPECT_EQ(
        said("[[packages]]\nname = \"a\"\nvcs = {type = \"hg\", url = \"https://x.org\"}\n"),
        "pylock.toml:5: unsupported kind of repository: 'hg'\nLock the package from git or from an index.");
    EXPECT_EQ(said("[[packages]]\nname = \"a\"\nvcs = {type = \"git\", url = \"https://u:secret@x.org/a\", "
                   "commit-id = \"main\"}\n"),
              "pylock.toml:3: the lock has no commit for 'a': a branch or tag can change later: "
              "git+https://x.org/a\nLock it again.");
    EXPECT_EQ(said("[[packages]]\nname = \"a\"\ndirectory = {path = \"nowhere\"}\n"),
              "pylock.toml:3: there is no file or directory 'nowhere'\nPaths are relative to the lock file. "
              "Put the lock file beside the files that it refers to.");
    EXPECT_EQ(said("[[packages]]\nname = \"a\"\nversion = \"1\"\nindex = \"https://x.org/${SECRET}\"\nsdist "
                   "= {hashes = {sha256 = \"" +
                   sha + "\"}}\n"),
              "pylock.toml:3: invalid requirement 'https://x.org/${SECRET}': pip would take ${...} for a "
              "variable" +
                  rewrite);
    EXPECT_EQ(
        refused("pylock.toml", pylock(wheel("a"), "requires-python = \"frob\"\n")),
        "pylock.toml:3: invalid condition for the version of Python: 'frob'\nWrite it like `>=3.11,<4`.");
    EXPECT_EQ(
        refused("pylock.toml", pylock("", "environments = [\"sys_platform == 'win32'\"]\n")),
        "pylock.toml:3: this pylock file is not for linux-64: its `environments` exclude it\nLock again "
        "for that platform.");
    EXPECT_EQ(refused("pylock.toml", "lock-version = \"1.0\n").substr(0, 29),
              "pylock.toml:1: invalid TOML: ");
}

// --- uv.lock
// ------------------------------------------------------------------------------------------------

std::string uv_package(const std::string& name, const std::string& more = "",
                       const std::string& source = "registry = \"https://pypi.org/simple\"") {
    return "[[package]]\nname = \"" + name + "\"\nversion = \"1.0\"\nsource = { " + source +
           " }\nsdist = { hash = \"" + hash + "\" }\n" + more;
}

std::string uv_lock(const std::string& dependencies, const std::string& packages) {
    return "version = 1\nrevision = 2\n[[package]]\nname = \"root\"\nversion = \"0\"\nsource = { editable = "
           "\".\" }\n" +
           dependencies + packages;
}

TEST(UvLock, MarkersAreFollowedThroughTheGraph) {
    const auto text = uv_lock(
        "dependencies = [{ name = \"a\", marker = \"python_version < '3.10'\" }, { name = \"b\" }, { name = "
        "\"w\", marker = \"sys_platform == 'win32'\" }]\n",
        uv_package("a", "dependencies = [{ name = \"c\", extra = [\"x\"] }, { name = \"d\" }]\n") +
            uv_package("b",
                       "dependencies = [{ name = \"d\", marker = \"implementation_name == 'cpython'\" }]\n") +
            uv_package("c", "dependencies = [{ name = \"a\" }]\n[package.optional-dependencies]\nx = [{ name "
                            "= \"e\" }]\ny = [{ name = \"f\" }]\n") +
            uv_package("d") + uv_package("e") + uv_package("f") + uv_package("w"));
    EXPECT_EQ(lines_of_text("uv.lock", text),
              (Lines{"a==1.0 ; python_version < '3.10'", "b==1.0", "c==1.0 ; python_version < '3.10'",
                     "d==1.0 ; implementation_name == 'cpython' or python_version < '3.10'",
                     "e==1.0 ; python_version < '3.10'"}));
}

TEST(UvLock, PartsThatExcludeEachOther) {
    const auto text = uv_lock(
        "[package.optional-dependencies]\ncpu = [{ name = \"a\", marker = \"extra == 'extra-4-root-cpu'\" "
        "}]\ngpu = [{ name = \"b\", marker = \"extra == 'extra-4-root-gpu'\" }]\n",
        uv_package("a", "", "registry = \"https://x.org/cpu\"") + uv_package("b"));
    EXPECT_EQ(lines_of_text("uv.lock", text, {.extras = {"cpu"}}),
              (Lines{"--extra-index-url https://x.org/cpu", "a==1.0"}));
    EXPECT_EQ(lines_of_text("uv.lock", text, {.extras = {"gpu"}}), (Lines{"b==1.0"}));
}

TEST(UvLock, EverySourceIsTaken) {
    const TemporaryDirectory directory;
    fs::create_directories(directory / "member");
    fs::create_directories(directory / "links");
    const auto file = directory.write(
        "uv.lock",
        uv_lock("dependencies = [{ name = \"g\" }, { name = \"m\" }, { name = \"u\" }, { name = \"l\" }]\n",
                uv_package("g", "", "git = \"https://x.org/g?rev=v1#" + git_commit + "\"") +
                    uv_package("m", "", "editable = \"member\"") +
                    uv_package("u", "", "url = \"https://x.org/u.zip\"") +
                    uv_package("l", "", "registry = \"links\"")));
    const auto place = directory.path().string();
    const auto read = test::good(converted(file));
    EXPECT_EQ(lines_of(read),
              (Lines{"--find-links " + place + "/links", "g @ git+https://x.org/g@" + git_commit,
                     "m @ file://" + place + "/member", "u @ https://x.org/u.zip#sha256=" + sha, "l==1.0"}));
    EXPECT_EQ(read.notes, (Lines{"The project 'root' itself is not installed, only what it depends on."}));
}

TEST(UvLock, MistakesAreShownWithTheirLine) {
    EXPECT_EQ(refused("uv.lock", "version = 2\n[[package]]\n"),
              "uv.lock:1: unknown version of the uv lock format\nVersion 1 is supported.");
    EXPECT_EQ(refused("uv.lock", "[[package]]\n"),
              "uv.lock: this uv lock file is incomplete: it has no `version`\nCopy or create it again.");
    EXPECT_EQ(refused("uv.lock", "version = 1\n[[package]]\n"), "uv.lock:2: a package has no valid `name`");
    EXPECT_EQ(
        refused("uv.lock",
                "version = 1\n[manifest]\nmembers = [\"a\"]\n" + uv_package("a", "", "editable = \"a\"")),
        "uv.lock: this uv lock file has no project at its root: it is the lock of a workspace of several "
        "projects\nGive the file that `uv export --no-emit-workspace --format requirements-txt -o "
        "requirements.txt` writes.");
    EXPECT_EQ(refused("uv.lock", uv_lock("dependencies = [{ name = \"a\" }]\n", "")),
              "uv.lock:7: the lock has no package for the dependency 'a'\nLock again. A part of the file is "
              "missing.");
    EXPECT_EQ(
        refused("uv.lock", uv_lock("dependencies = [{ name = \"a\" }]\n", uv_package("a") + uv_package("a"))),
        "uv.lock:7: several packages fit the dependency 'a'\nLock again.");
    EXPECT_EQ(refused("uv.lock", uv_lock("dependencies = \"a\"\n", "")),
              "uv.lock:7: `dependencies` must be a list of tables");
    EXPECT_EQ(refused("uv.lock", uv_lock("", uv_package("a", "", "frob = \"x\""))).substr(0, 46),
              "uv.lock:10: a package has a source of unknown ");
    EXPECT_EQ(refused("uv.lock", uv_lock("", ""), {.extras = {"x"}}),
              "uv.lock: this file has no extra 'x': it has none\nLeave out --extra.");
}

TEST(UvLock, AProjectWithoutPackagesIsRefused) {
    EXPECT_EQ(refused("uv.lock", uv_lock("", uv_package("a"))),
              "uv.lock: this lock has no package to install\nIf its packages belong to a group or an extra, "
              "choose that with --group or --extra.");
}

TEST(UvLock, HostileMarkersEnd) {
    std::string packages;
    for (int i = 0; i < 60; ++i) {
        std::string dependencies;
        for (int k = 0; k < 60; ++k)
            dependencies += "{ name = \"p" + std::to_string(k) + "\", marker = \"platform_release == '" +
                            std::to_string(i * 60 + k) + "'\" }, ";
        packages += uv_package("p" + std::to_string(i), "dependencies = [" + dependencies + "]\n");
    }
    const auto said =
        refused("uv.lock", uv_lock("dependencies = [{ name = \"p0\" }, { name = \"p1\", marker = "
                                   "\"python_version < '3'\" }]\n",
                                   packages));
    EXPECT_NE(said.find("too complex"), std::string::npos) << said;
}

// --- poetry.lock and Pipfile.lock
// ---------------------------------------------------------------------------

std::string poetry_lock(const std::string& packages, const std::string& version = "2.1") {
    return packages + "[metadata]\nlock-version = \"" + version + "\"\npython-versions = \"^3.9\"\n";
}

TEST(PoetryLock, GroupsHaveMarkersOfTheirOwn) {
    const auto text =
        poetry_lock("[[package]]\nname = \"a\"\nversion = \"1.0\"\ngroups = [\"main\", \"dev\"]\n"
                    "markers = {main = \"python_version < '3.10'\", dev = \"os_name == 'posix'\"}\n"
                    "files = [{file = \"a.zip\", hash = \"" +
                    hash + "\"}]\n");
    EXPECT_EQ(lines_of_text("poetry.lock", text), (Lines{"a==1.0 ; python_version < '3.10'"}));
    EXPECT_EQ(lines_of_text("poetry.lock", text, {.groups = {"dev"}}), (Lines{"a==1.0"}));
    const TemporaryDirectory directory;
    EXPECT_EQ(test::good(converted(directory.write("poetry.lock", text))).python.text, ">=3.9,<4");
}

TEST(PoetryLock, EverySourceIsTaken) {
    const auto package = [](const std::string& name, const std::string& source) {
        return "[[package]]\nname = \"" + name +
               "\"\nversion = \"1.0\"\ngroups = [\"main\"]\nfiles = [{file = "
               "\"a.zip\", hash = \"" +
               hash + "\"}]\n[package.source]\n" + source;
    };
    EXPECT_EQ(
        lines_of_text(
            "poetry.lock",
            "[[package]]\n" +
                poetry_lock(package("g", "type = \"git\"\nurl = \"https://x.org/g\"\nreference = \"main\"\n"
                                         "resolved_reference = \"" +
                                             git_commit + "\"\n") +
                            package("u", "type = \"url\"\nurl = \"https://x.org/u.zip\"\n") +
                            package("i", "type = \"legacy\"\nurl = \"https://x.org/simple\"\n"))
                    .substr(12)),
        (Lines{"--extra-index-url https://x.org/simple", "g @ git+https://x.org/g@" + git_commit,
               "u @ https://x.org/u.zip#sha256=" + sha, "i==1.0"}));
    const auto git = [&](const std::string& address) {
        return poetry_lock(package("g", "type = \"git\"\nurl = \"" + address + "\"\nresolved_reference = \"" +
                                            git_commit + "\"\n"));
    };
    EXPECT_EQ(lines_of_text("poetry.lock", git("git@x.org:me/g.git")),
              (Lines{"g @ git+ssh://git@x.org/me/g.git@" + git_commit}));
    for (const std::string address : {"ext::sh% -c% id", "ext::sh://x", "../g", ""})
        EXPECT_EQ(refused("poetry.lock", git(address)),
                  "poetry.lock:1: unsupported address of a git repository" +
                      (address.empty() ? "" : ": " + address) +
                      "\nLock the package from an address that begins with https:// or ssh://.");
    EXPECT_EQ(
        refused("poetry.lock", poetry_lock(package("h", "type = \"hg\"\n"))),
        "poetry.lock:6: a package has a source of unknown kind: 'hg'\n`poetry export` converts the lock "
        "to a requirements file.");
}

TEST(PoetryLock, VersionsOfPythonAreUnderstood) {
    const auto python = [](const std::string& versions) {
        const TemporaryDirectory directory;
        const auto file = directory.write(
            "poetry.lock", "[[package]]\nname = \"a\"\nversion = \"1.0\"\ngroups = [\"main\"]\nfiles = "
                           "[{file = \"a.zip\", hash = \"" +
                               hash + "\"}]\n[metadata]\nlock-version = \"2.1\"\npython-versions = \"" +
                               versions + "\"\n");
        return test::good(converted(file)).python.text;
    };
    EXPECT_EQ(python("*"), "");
    EXPECT_EQ(python("^3.9"), ">=3.9,<4");
    EXPECT_EQ(python("~3.11.2"), ">=3.11.2,<3.12");
    EXPECT_EQ(python("~3"), ">=3,<4");
    EXPECT_EQ(python("~=3.9"), "~=3.9");
    EXPECT_EQ(python(">= 3.9 <4.0"), ">=3.9,<4.0");
    EXPECT_EQ(python(">=3.9, <4.0, !=3.9.7"), ">=3.9,<4.0,!=3.9.7");
    EXPECT_EQ(python("^2.7 || ^3.9"), ">=2.7,<3|>=3.9,<4");
    EXPECT_EQ(python("3.11.*"), "3.11.*");
}

TEST(PoetryLock, OldVersionsAreRefused) {
    EXPECT_EQ(refused("poetry.lock", poetry_lock("[[package]]\nname = \"a\"\n", "2.0")),
              "poetry.lock:4: unsupported version of the poetry lock format: '2.0': it does not say which "
              "packages belong to which group\nLock again with Poetry 2: `poetry lock`.");
    EXPECT_EQ(
        refused("poetry.lock", poetry_lock("[[package]]\nname = \"a\"\n", "3.0")),
        "poetry.lock:4: unsupported version of the poetry lock format: '3.0'\nVersion 2.1 is supported, "
        "which Poetry 2 writes.");
}

std::string pipfile_lock(const std::string& packages, const std::string& sources = "") {
    return "{\n\"_meta\": {\"pipfile-spec\": 6, \"requires\": {\"python_version\": \"3.11\"}, \"sources\": "
           "[" +
           sources + "]},\n\"default\": {\n" + packages + "},\n\"develop\": {}, \"docs\": {}\n}\n";
}

TEST(PipfileLock, EverySourceIsTaken) {
    const TemporaryDirectory directory;
    const auto file = directory.write("Pipfile.lock",
                                      pipfile_lock("\"a\": {\"version\": \"==1.0\", \"hashes\": [\"" + hash +
                                                       "\"], \"index\": \"x\"},\n"
                                                       "\"g\": {\"git\": \"https://x.org/g\", \"ref\": \"" +
                                                       git_commit + "\"}\n",
                                                   R"({"name": "x", "url": "https://x.org/simple"})"));
    const auto read = test::good(converted(file, {.groups = {"docs", "dev"}}));
    EXPECT_EQ(lines_of(read), (Lines{"--extra-index-url https://x.org/simple", "a==1.0",
                                     "g @ git+https://x.org/g@" + git_commit}));
    EXPECT_EQ(read.python.text, "==3.11.*");
}

TEST(PipfileLock, CategoriesMayShareAPackage) {
    const auto lock = [](const std::string& marker, const std::string& version) {
        const auto package = [](const std::string& number, const std::string& more) {
            return "\"a\": {\"version\": \"==" + number + "\", \"hashes\": [\"" + hash + "\"]" + more + "}";
        };
        return "{\"_meta\": {\"pipfile-spec\": 6},\n\"default\": {" +
               package("1.0", ", \"markers\": \"" + marker + "\"") + "},\n\"Docs\": {" +
               package(version, "") + "}}\n";
    };
    const Parts docs{.groups = {"docs"}};
    EXPECT_EQ(lines_of_text("Pipfile.lock", lock("sys_platform == 'win32'", "2.0"), docs), (Lines{"a==2.0"}));
    EXPECT_EQ(lines_of_text("Pipfile.lock", lock("sys_platform == 'linux'", "1.0"), docs), (Lines{"a==1.0"}));
    EXPECT_EQ(refused("Pipfile.lock", lock("sys_platform == 'linux'", "2.0"), docs),
              "Pipfile.lock:3: 'a' has other versions in other categories\nChoose one of the categories, or "
              "lock again.");
}

TEST(PipfileLock, MistakesAreShownWithTheirLine) {
    EXPECT_EQ(refused("Pipfile.lock", "{\"_meta\": {\"pipfile-spec\": 7}}"),
              "Pipfile.lock:1: unknown version of the Pipfile.lock format: '7'\nVersion 6 is supported.");
    EXPECT_EQ(refused("Pipfile.lock", pipfile_lock("\"a\": {\"version\": \"*\"}\n")),
              "Pipfile.lock:4: the lock has no exact version of 'a'\nLock it again on this platform: pipenv "
              "leaves out the versions of packages for other platforms.");
    EXPECT_EQ(refused("Pipfile.lock", pipfile_lock("\"a\": {\"version\": \"==1.0\"}\n")),
              "Pipfile.lock:4: the lock has no checksum for 'a': its download cannot be verified\nLock it "
              "again from an index or channel that has checksums.");
    EXPECT_EQ(refused("Pipfile.lock", pipfile_lock("\"a\": 1\n")),
              "Pipfile.lock:4: a package must be a mapping");
    EXPECT_EQ(
        refused("Pipfile.lock", pipfile_lock(""), {.groups = {"x"}}),
        "Pipfile.lock: this file has no group 'x': it has develop, dev, docs\nGive --group one of these.");
}

TEST(PipfileLock, APackageOfTwoCategoriesIsNeededIfOneNeedsIt) {
    const auto lock = [](const std::string& in_docs) {
        const std::string package = "\"version\": \"==1.0\", \"hashes\": [\"" + hash + "\"]";
        return "{\"_meta\": {\"pipfile-spec\": 6}, \"default\": {\"a\": {" + package +
               ", \"markers\": \"python_version < '3.8'\"}}, \"docs\": {\"a\": {" + package + in_docs + "}}}";
    };
    const Parts docs{.groups = {"docs"}};
    EXPECT_EQ(lines_of_text("Pipfile.lock", lock(""), docs), (Lines{"a==1.0"}));
    EXPECT_EQ(lines_of_text("Pipfile.lock", lock(", \"markers\": \"python_version > '3.12'\""), docs),
              (Lines{"a==1.0 ; python_version < '3.8' or python_version > '3.12'"}));
    EXPECT_NE(refused("Pipfile.lock", lock(", \"ref\": \"x\""), docs), "taken");
}

// --- hostile addresses
// --------------------------------------------------------------------------------------

TEST(Addresses, HaveNoMarkers) {
    const auto line = [](const std::string& url) {
        return lines_of_text("pylock.toml", pylock("[[packages]]\nname = \"a\"\narchive = { url = \"" + url +
                                                   "\", hashes = { sha256 = \"" + sha + "\" } }\n"));
    };
    EXPECT_EQ(line("https://h/a.zip ; os_name != '#'"),
              (Lines{"a @ https://h/a.zip%20%3B%20os_name%20!=%20'#sha256=" + sha + "&'"}));
    EXPECT_EQ(line("https://h/a.zip;(os_name!='#')"),
              (Lines{"a @ https://h/a.zip%3B(os_name!='#sha256=" + sha + "&')"}));
}

TEST(Addresses, HaveNoOtherChecksums) {
    const auto said = [](const std::string& url) {
        return refused("pylock.toml", pylock("[[packages]]\nname = \"a\"\narchive = { url = \"" + url +
                                             "\", hashes = { sha256 = \"" + sha + "\" } }\n"));
    };
    EXPECT_EQ(said("https://h/a.zip?x=1"), "taken");
    EXPECT_EQ(said("https://h/a.zip?x=1&sha256=" + std::string(64, 'b')).substr(0, 13), "pylock.toml:3");
    EXPECT_NE(said("https://h/a.zip?x=1&md5=" + std::string(32, 'b')), "taken");
}

TEST(Addresses, OfRepositoriesLeadToTheCommit) {
    const auto line = [](const std::string& url) {
        return lines_of_text("pylock.toml",
                             pylock("[[packages]]\nname = \"a\"\nvcs = { type = \"git\", url = \"" + url +
                                    "\", commit-id = \"" + git_commit + "\" }\n"));
    };
    EXPECT_EQ(line("https://h/r.git"), (Lines{"a @ git+https://h/r.git@" + git_commit}));
    EXPECT_EQ(line("https://h/r.git#" + std::string(40, 'd')),
              (Lines{"a @ git+https://h/r.git%23" + std::string(40, 'd') + "@" + git_commit}));
    EXPECT_EQ(lines_of_text("uv.lock",
                            uv_lock("dependencies = [{ name = \"a\" }]\n",
                                    uv_package("a", "", "git = \"https://h/r.git?x=1#" + git_commit + "\""))),
              (Lines{"a @ git+https://h/r.git@" + git_commit + "?x=1"}));
}

TEST(Addresses, AndRequirementsAreOneLine) {
    for (const std::string end : {"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"})
        EXPECT_EQ(
            refused("pyproject.toml", "[project]\ndependencies = [\"six" + end + "idna\"]\n").substr(0, 16),
            "pyproject.toml:2")
            << end;
}

TEST(Pyproject, ARequirementOnItselfIsNeverThePackageOfAnIndex) {
    EXPECT_EQ(
        lines_of_text("pyproject.toml",
                      "[project]\nname = \"mine\"\ndependencies = [\"six\"]\n[dependency-groups]\ndev = "
                      "[\"Mine\"]\n",
                      {.groups = {"dev"}}),
        (Lines{"six"}));
}

TEST(UvLock, ConflictsOfOtherMembersAreRefused) {
    const auto said = [](const std::string& marker) {
        return refused("uv.lock",
                       uv_lock("dependencies = [{ name = \"a\", marker = \"extra == '" + marker + "'\" }]\n",
                               uv_package("a")));
    };
    for (const char* marker : {"extra-6-member-cpu", "group-6-member-dev", "project-6-member"})
        EXPECT_NE(said(marker).find("conflicts between members of a workspace"), std::string::npos) << marker;
}

// --- projects and scripts
// -----------------------------------------------------------------------------------

TEST(Pyproject, MistakesAreShownWithTheirLine) {
    const auto said = [](const std::string& text, const Parts& parts = {}) {
        return refused("pyproject.toml", text, parts);
    };
    EXPECT_EQ(
        said("[tool.poetry]\nname = \"x\"\n"),
        "pyproject.toml: this pyproject file lists no dependencies: it has no table [project]\nIf it is a "
        "project of Poetry, give its poetry.lock. If it only has groups, choose one with --group.");
    EXPECT_EQ(said("[project]\nname = \"x\"\n"),
              "pyproject.toml: this file requires no package\nIf its packages belong to a group or an extra, "
              "choose that with --group or --extra.");
    EXPECT_EQ(said("[project]\nname = \"x\"\ndynamic = [\"dependencies\"]\n"),
              "pyproject.toml:3: the `dependencies` of this project are dynamic: only a build of the project "
              "knows them\nGive a lock of the project, or list its directory in a requirements file: "
              "`./PROJECT`.");
    EXPECT_EQ(said("[project]\ndependencies = [\"six\", 1]\n"),
              "pyproject.toml:2: `dependencies` must be a list of strings");
    EXPECT_EQ(said("[project]\ndependencies = [\"-r /etc/passwd\"]\n"),
              "pyproject.toml:2: invalid requirement '-r /etc/passwd': pip would take - for an option" +
                  rewrite);
    EXPECT_EQ(said("[project]\ndependencies = [\"six\\n-r x\"]\n"),
              "pyproject.toml:2: invalid requirement 'six?-r x': it contains a control character" + rewrite);
    EXPECT_EQ(said("[project]\ndependencies = [\"./six\"]\n"),
              "pyproject.toml:2: invalid requirement: './six'\nWrite a package name and optional version "
              "conditions, such as `numpy>=1.26,<3`, or `NAME @ URL`.");
    EXPECT_EQ(said("[project]\nname = \"x\"\ndependencies = [\"x[b]\"]\noptional-dependencies = {a = []}\n"),
              "pyproject.toml:3: this project has no extra 'b'\nCorrect the name.");
    EXPECT_EQ(
        said("[project]\ndependencies = [\"Six\"]\n[tool.uv.sources]\nsix = {git = \"https://x.org\"}\n"),
        "pyproject.toml:2: 'Six' comes from where [tool.uv.sources] says, which only uv reads\nLock it "
        "with `uv lock`, and give the uv.lock.");
    const Parts a{.groups = {"a"}};
    EXPECT_EQ(said("[dependency-groups]\na = [\"six\", {include-group = \"b\"}]\nb = [{include-group = "
                   "\"A\"}]\n",
                   a),
              "pyproject.toml:2: the group 'a' includes itself\nRemove one of the `include-group`.");
    EXPECT_EQ(said("[dependency-groups]\na = [{include-group = \"b\"}]\n", a),
              "pyproject.toml:2: there is no group 'b' to include\nCorrect the name.");
    EXPECT_EQ(said("[dependency-groups]\na = [1]\n", a),
              "pyproject.toml:2: an item of a group must be a requirement or an `include-group`");
    EXPECT_EQ(said("[dependency-groups]\na = \"six\"\n", a),
              "pyproject.toml:2: the group 'a' must be a list");
    EXPECT_EQ(lines_of_text("pyproject.toml",
                            "[dependency-groups]\na = [\"six\", {include-group = \"b\"}, "
                            "{include-group = \"b\"}]\nb = [\"idna\"]\n",
                            a),
              (Lines{"six", "idna"}));
}

TEST(Pyproject, RequirementsMustHaveNames) {
    const auto said = [](const std::string& requirement) {
        return refused("pyproject.toml", "[project]\ndependencies = [\"" + requirement + "\"]\n");
    };
    const std::string advice = "\nWrite a package name and optional version conditions, such as "
                               "`numpy>=1.26,<3`, or `NAME @ URL`.";
    EXPECT_EQ(said("https://u:secret@x.org/a.whl"),
              "pyproject.toml:2: invalid requirement: 'https://x.org/a.whl'" + advice);
    EXPECT_EQ(said("six/../evil"), "pyproject.toml:2: invalid requirement: 'six/../evil'" + advice);
    // A login is not cut in two, after which it would not be recognised.
    const auto text =
        said("https://x.org/" + std::string(150, 'a') + " https://user:" + std::string(60, 's') + "@y.org");
    EXPECT_EQ(text.find("sss"), std::string::npos) << text;
}

TEST(Pyproject, NamesMustDifferWhenNormalised) {
    EXPECT_EQ(refused("pyproject.toml", "[dependency-groups]\nd_v = [\"six\"]\nD-V = [\"idna\"]\n",
                      {.groups = {"d.v"}}),
              "pyproject.toml:2: 'D-V' and 'd_v' are the same name: upper case, `-`, `_` and `.` make no "
              "difference\nRename one of them.");
}

TEST(Pyproject, LongChainsNeedNoStack) {
    constexpr int length = 200'000;
    std::string extras;
    for (int i = 0; i < length; ++i)
        extras += "e" + std::to_string(i) + " = [\"x[e" + std::to_string((i + 1) % length) + "]\"]\n";
    EXPECT_EQ(lines_of_text("pyproject.toml", "[project]\nname = \"x\"\ndependencies = [\"six\", \"x[e0]\"]\n"
                                              "[project.optional-dependencies]\n" +
                                                  extras),
              (Lines{"six"}));
    std::string groups;
    for (int i = 0; i < 200; ++i)
        groups += "g" + std::to_string(i) + " = [{include-group = \"g" + std::to_string(i + 1) + "\"}]\n";
    EXPECT_EQ(refused("pyproject.toml", "[dependency-groups]\n" + groups + "g200 = [\"six\"]\n",
                      {.groups = {"g0"}}),
              "pyproject.toml:101: groups include one another too deeply: at most 100 may");
}

TEST(Script, TheBlockIsRead) {
    const TemporaryDirectory directory;
    const auto file = directory.write("x.py", "#!/usr/bin/env python\n# /// script\n# requires-python = "
                                              "\">=3.11\"\n# dependencies = [\n#   \"six\",\n#\n# ]\n# "
                                              "///\nimport six\n");
    const auto read = test::good(converted(file));
    EXPECT_EQ(lines_of(read), (Lines{"six"}));
    EXPECT_FALSE(read.complete);
    EXPECT_EQ(read.lines.front().where, file.string() + ":5");
    EXPECT_EQ(read.python.text, ">=3.11");
    EXPECT_EQ(read.python.where, file.string() + ":3");
    EXPECT_EQ(refused("x.py", "# /// script\n# dependencies = [\n# ///\n").substr(0, 20),
              "x.py:2: invalid TOML");
    EXPECT_EQ(refused("x.py", "# /// script\n# dependencies = []\nimport os\n"),
              "x.py:1: the block of metadata in this script does not end\nEnd it with a line `# ///`.");
    EXPECT_EQ(refused("x.py", "# /// script\n# ///\n\n# /// script\n# ///\n"),
              "x.py:4: this script has two blocks of metadata\nKeep one of them.");
    EXPECT_EQ(refused("x.py", "# /// script\n# dependencies = [\"six\"]\n# ///\n", {.groups = {"a"}}),
              "x.py: --group selects a part of a poetry lock file, a uv lock file, a pylock file, a "
              "Pipfile.lock or a pyproject file: this is a Python script with metadata\nLeave it out.");
}

} // namespace
} // namespace containerize::spec

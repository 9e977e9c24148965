#include "../good.h"
#include "util/digest.h"
#include "wheel/installation.h"
#include "wheel/names.h"
#include "wheel/scripts.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace containerize::wheel {
namespace {

using test::error_of;
using test::good;

constexpr const char* directory = "demo-1.0.dist-info";

InstallRequest request() {
    return {.layout = venv_layout("3.11", "demo"), .interpreter = "/env/bin/python", .python = "3.11"};
}

DistInfo info(std::string record, std::string entry_points = "") {
    return {.directory = directory,
            .metadata = "Name: demo\nVersion: 1.0\n",
            .wheel = "Wheel-Version: 1.0\n",
            .record = std::move(record),
            .entry_points = std::move(entry_points)};
}

const GeneratedFile* find(const Installation& plan, const std::string& path) {
    const auto found = std::ranges::find(plan.generated, path, &GeneratedFile::path);
    return found == plan.generated.end() ? nullptr : &*found;
}

std::string content(const Installation& plan, const std::string& path) {
    const auto* file = find(plan, path);
    return file == nullptr ? "missing" : file->content;
}

std::string in_packages(const std::string& path) {
    return "lib/python3.11/site-packages/" + path;
}

std::string row(const std::string& path, const std::string& text) {
    return path + "," + record_digest(sha256(text)) + "," + std::to_string(text.size()) + "\r\n";
}

TEST(Installation, RecordIsThatOfPip) {
    const std::string rewritten = "#!/env/bin/python\nprint(1)\n";
    auto how = request();
    how.requested = true;
    how.direct_url = "{}";
    PackagedFile tool{.place = {Scheme::scripts, "tool"}, .executable = true};
    tool.script = "#!pythonw -E\r\nprint(1)\n";
    const auto plan = good(plan_installation(
        info("demo.py,sha256=abc,3\ndemo-1.0.data/scripts/tool,sha256=old,1\ndemo-1.0.data/data/share/x,,\n"
             "demo-1.0.data/headers/x.h,sha256=h,5\n\"a,\"\"b\"\".py\",sha256=q,1\ngone.py,sha256=g,1\n"
             "demo-1.0.data/scripts/gone,sha256=g,1\ndemo-1.0.dist-info/RECORD,,\n",
             "[console_scripts]\nrun = demo:main\n"),
        {{.place = {Scheme::site_packages, "demo.py"}},
         {.place = {Scheme::site_packages, "a,\"b\".py"}},
         {.place = {Scheme::site_packages, "not_listed.py"}},
         tool,
         {.place = {Scheme::data, "share/x"}},
         {.place = {Scheme::headers, "x.h"}},
         {.place = {Scheme::site_packages, "demo-1.0.dist-info/RECORD"}}},
        how));
    EXPECT_EQ(content(plan, "bin/tool"), rewritten);
    EXPECT_TRUE(find(plan, "bin/tool")->executable);
    EXPECT_EQ(content(plan, in_packages("demo-1.0.dist-info/INSTALLER")), "containerize\n");
    EXPECT_EQ(content(plan, in_packages("demo-1.0.dist-info/REQUESTED")), "");
    EXPECT_EQ(content(plan, in_packages("demo-1.0.dist-info/direct_url.json")), "{}");
    EXPECT_EQ(content(plan, in_packages("demo-1.0.dist-info/RECORD")),
              row("../../../bin/run", content(plan, "bin/run")) + row("../../../bin/tool", rewritten) +
                  "../../../include/site/python3.11/demo/x.h,sha256=h,5\r\n../../../share/x,,\r\n"
                  "\"a,\"\"b\"\".py\",sha256=q,1\r\ndemo-1.0.data/scripts/gone,sha256=g,1\r\n" +
                  row("demo-1.0.dist-info/INSTALLER", "containerize\n") + "demo-1.0.dist-info/RECORD,,\r\n" +
                  row("demo-1.0.dist-info/REQUESTED", "") + row("demo-1.0.dist-info/direct_url.json", "{}") +
                  "demo.py,sha256=abc,3\r\ngone.py,sha256=g,1\r\nnot_listed.py,,\r\n");
    EXPECT_EQ(plan.replaced, (std::set<Place>{{Scheme::site_packages, "demo-1.0.dist-info/RECORD"},
                                              {Scheme::scripts, "tool"}}));
}

TEST(Installation, APlaceCanHaveSeveralRows) {
    const auto plan = good(plan_installation(
        info("a.py,,1\ndemo-1.0.data/purelib/a.py,,1\ndemo-1.0.data/data/x,,2\ndemo-1.0.data/data/x,,2\n"),
        {{.place = {Scheme::site_packages, "a.py"}}, {.place = {Scheme::data, "x"}}}, request()));
    const auto record = content(plan, in_packages("demo-1.0.dist-info/RECORD"));
    EXPECT_EQ(record.substr(0, record.find(directory)), // pip leaves the last one, too
              "../../../x,,2\r\na.py,,1\r\na.py,,1\r\ndemo-1.0.data/data/x,,2\r\n");
}

TEST(Installation, ScriptsThatSetuptoolsMadeAreReplaced) {
    const auto plan = good(plan_installation(
        info("demo-1.0.data/scripts/run-script.py,sha256=x,1\n", "[console_scripts]\nrun = demo:main\n"),
        {{.place = {Scheme::scripts, "run-script.py"}},
         {.place = {Scheme::scripts, "run.exe"}},
         {.place = {Scheme::scripts, "run"}},
         {.place = {Scheme::scripts, "runner"}}},
        request()));
    EXPECT_EQ(plan.replaced, (std::set<Place>{{Scheme::scripts, "run"},
                                              {Scheme::scripts, "run-script.py"},
                                              {Scheme::scripts, "run.exe"}}));
    EXPECT_NE(content(plan, in_packages("demo-1.0.dist-info/RECORD"))
                  .find("\r\ndemo-1.0.data/scripts/run-script.py,sha256=x,1\r\n"),
              std::string::npos);
}

TEST(Installation, CommandsOfPipHaveThisPythonsVersion) {
    const auto plan = good(plan_installation(info("", "[console_scripts]\npip=p:m\npip2=p:m\npip3.8=p:m\npip-"
                                                      "x=p:m\neasy_install=e:m\neasy_install-3.6=e:m\n"),
                                             {}, request()));
    std::vector<std::string> commands;
    for (const auto& file : plan.generated)
        if (file.path.starts_with("bin/")) commands.push_back(file.path.substr(4));
    std::ranges::sort(commands);
    EXPECT_EQ(commands, (std::vector<std::string>{"easy_install", "easy_install-3.11", "pip", "pip-x", "pip3",
                                                  "pip3.11"}));
}

TEST(Installation, OtherLayouts) {
    const auto conda = prefix_layout("3.11", "demo");
    EXPECT_EQ(path_in_prefix(conda, {Scheme::site_packages, "x.py"}), in_packages("x.py"));
    EXPECT_EQ(path_in_prefix(conda, {Scheme::scripts, "x"}), "bin/x");
    EXPECT_EQ(path_in_prefix(conda, {Scheme::headers, "x.h"}), "include/python3.11/demo/x.h");
    EXPECT_EQ(path_in_prefix(conda, {Scheme::data, "etc/x"}), "etc/x");
    auto how = request();
    how.layout = conda;
    const auto plan =
        good(plan_installation(info("demo-1.0.data/data/lib/python3.11/site-packages/x.pth,,\n"),
                               {{.place = {Scheme::data, "lib/python3.11/site-packages/x.pth"}}}, how));
    EXPECT_TRUE(content(plan, in_packages("demo-1.0.dist-info/RECORD")).ends_with("\r\nx.pth,,\r\n"));
}

TEST(EntryPoints, AreReadAsPipReadsThem) {
    const auto commands = good(parse_entry_points("# comment\n[other]\nx = nothing\n\n[console_scripts]\r\n"
                                                  "  a = pkg.mod:Class.run [extra, more]  \n; comment\n"
                                                  "b=m:f\nb = m:g\n[gui_scripts]\nC.d-e = m:f ; comment\n"
                                                  "two words = m : f\n"));
    ASSERT_EQ(commands.size(), 4);
    EXPECT_EQ(commands[0].name, "C.d-e");
    EXPECT_EQ(commands[1].module, "pkg.mod");
    EXPECT_EQ(commands[1].function, "Class.run");
    EXPECT_EQ(commands[2].function, "g");
    EXPECT_EQ(commands[3].name, "two words");
    EXPECT_EQ(commands[3].module, "m");
    EXPECT_EQ(commands[3].function, "f");
    EXPECT_EQ(
        good(parse_entry_points("[gui_scripts]\na = m:g\n[console_scripts]\na = m:f\n")).front().function,
        "g");
    for (const auto* const followed :
         {"a = m:f()", "a = m:f;import os", "a = m:f-g", "a = m:f..g", "a=m:f[x"}) {
        const auto command = good(parse_entry_points("[console_scripts]\n" + std::string(followed))).front();
        EXPECT_EQ(command.module + ":" + command.function, "m:f") << followed;
    }
    for (const auto* const bad :
         {"a", "a = module", "a = m:f:g", "a = m:", "a = :f", "a = m-n:f", "a = m..n:f", "a = m.:f", "a ="})
        EXPECT_EQ(error_of(parse_entry_points("[console_scripts]\n" + std::string(bad))).why,
                  "line 2 is not NAME = MODULE:FUNCTION")
            << bad;
    for (const auto* const bad : {"../a = m:f", "a/b = m:f", ".. = m:f", " = m:f", "a\tb = m:f"})
        EXPECT_EQ(error_of(parse_entry_points("[gui_scripts]\n" + std::string(bad))).why,
                  "line 2 has a name that no command can have")
            << bad;
    EXPECT_FALSE(parse_entry_points("[console_scripts]\n\xff = m:f\n"));
}

TEST(Record, IsRead) {
    const auto rows = good(parse_record("a.py,sha256=x,1\r\n\r\n\"b,\"\"c\"\"\",,\rd\ne,1,2,3"));
    ASSERT_EQ(rows.size(), 4);
    EXPECT_EQ(rows[0], (RecordRow{"a.py", "sha256=x", "1"}));
    EXPECT_EQ(rows[1].path, "b,\"c\"");
    EXPECT_EQ(rows[2], (RecordRow{"d", "", ""}));
    EXPECT_EQ(rows[3].size, "2");
    EXPECT_EQ(record_text({rows[0], rows[1]}), "a.py,sha256=x,1\r\n\"b,\"\"c\"\"\",,\r\n");
    EXPECT_EQ(record_digest(sha256("")), "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
    EXPECT_EQ(record_text(good(parse_record("\n,,\n"))), ",,\r\n");
    EXPECT_FALSE(parse_record("\"a"));
    EXPECT_FALSE(parse_record("\"a\"b,,"));
}

TEST(Metadata, HeadersEndAtTheDescription) {
    const auto read =
        parse_metadata("Metadata-Version: 2.1\r\nname:  Demo \r\nSummary: Version: 3\r\n\r\nVersion: 2\r\n");
    EXPECT_EQ(read.name, "Demo");
    EXPECT_EQ(read.version, "");
    EXPECT_EQ(normalised_name("A__b.-C"), "a-b-c");
}

TEST(Scripts, StartWithTheInterpreter) {
    EXPECT_EQ(script_start("/env/bin/python"), "#!/env/bin/python\n");
    EXPECT_EQ(script_start("/e$nv/bin/python"), "#!/e$nv/bin/python\n"); // the kernel takes it as it is
    EXPECT_EQ(script_start("/my env/bin/python"),
              "#!/bin/sh\n'''exec' \"/my env/bin/python\" \"$0\" \"$@\"\n' '''\n");
    const auto fits = "/" + std::string(123, 'e');
    EXPECT_EQ(script_start(fits), "#!" + fits + "\n");
    EXPECT_TRUE(script_start(fits + "e").starts_with("#!/bin/sh\n'''exec' \"/e"));
    const auto* const beside =
        "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/python \"$0\" \"$@\"\n' '''\n";
    EXPECT_EQ(script_start("/a $b/bin/python"), beside);
    EXPECT_EQ(script_start("/a \"b\"/bin/python"), beside);
    EXPECT_EQ(script_start("/\xff/bin/python"), beside);
}

TEST(Scripts, OnlyPythonsAreRewritten) {
    EXPECT_TRUE(wants_interpreter("#!python\n"));
    EXPECT_TRUE(wants_interpreter("#!pythonw"));
    EXPECT_FALSE(wants_interpreter("#!/usr/bin/python\n"));
    EXPECT_FALSE(wants_interpreter("# !python"));
    EXPECT_EQ(with_interpreter("#!python", "/p"), "#!/p\n");
    EXPECT_EQ(with_interpreter("#!python\n\n1", "/p"), "#!/p\n\n1");
}

} // namespace
} // namespace containerize::wheel

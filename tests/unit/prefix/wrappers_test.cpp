#include "../good.h"
#include "../temporary.h"
#include "prefix/wrappers.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::prefix {

namespace {

using test::mode_of;
using test::TemporaryDirectory;

class Wrappers : public testing::Test {
protected:
    [[nodiscard]] fs::path output(const std::string& name) const { return directory_ / "output" / name; }
    void program(const std::string& name) const {
        chmod(directory_.write("root/" + name, "#!/bin/sh\n").c_str(), 0755);
    }
    [[nodiscard]] Result<std::size_t> make(const std::vector<std::string>& paths = {"bin"},
                                           mode_t umask_bits = 022) const {
        return make_wrappers({.root = directory_ / "root",
                              .surroundings = host_,
                              .prefix = "/prefix",
                              .mask = "/built/for",
                              .paths = paths,
                              .libexec = directory_.write("libexec/launcher", "launcher").parent_path(),
                              .output = directory_ / "output",
                              .existing = {},
                              .umask_bits = umask_bits});
    }
    TemporaryDirectory directory_;
    image::DirectoryView host_{"/"};
};

TEST_F(Wrappers, OneForEachCommand) {
    program("bin/python3.11");
    program("bin/tool");
    const auto bin = directory_ / "root/bin";
    fs::create_symlink("python3.11", bin / "python");
    fs::create_symlink("/prefix/bin/tool", bin / "by-prefix");
    fs::create_symlink("/bin/sh", bin / "of-host");
    fs::create_symlink("nowhere", bin / "dangling");
    fs::create_symlink("loop", bin / "loop");
    directory_.write("root/bin/activate", "text");
    directory_.write("root/bin/inner/x", "");
    const auto made = test::good(make());
    EXPECT_EQ(made, 5U);
    struct stat info {};
    ASSERT_EQ(stat(output("bin/python").c_str(), &info), 0);
    EXPECT_EQ(info.st_nlink, 7U); // including _debug_exec and _debug_shell
    for (const char* name : {"python3.11", "by-prefix", "of-host", "tool", "_debug_exec", "_debug_shell"})
        EXPECT_EQ(mode_of(output("bin") / name), 0755U) << name;
    EXPECT_EQ(*read_file(output("bin/activate")), "text");
    for (const char* name : {"dangling", "loop", "inner"})
        EXPECT_FALSE(fs::exists(fs::symlink_status(output("bin") / name))) << name;
}

TEST_F(Wrappers, UmaskDecidesWhoMayRun) {
    program("bin/tool");
    ASSERT_TRUE(make({"bin"}, 027));
    EXPECT_EQ(mode_of(output("bin/tool")), 0750U);
}

TEST_F(Wrappers, FurtherDirectories) {
    program("bin/tool");
    program("opt/x/bin/other");
    ASSERT_TRUE(make({"bin", "opt/x/bin"}));
    EXPECT_TRUE(fs::exists(output("opt/x/bin/other")));
}

TEST_F(Wrappers, DirectoryThatIsALink) {
    program("env/bin/tool");
    program("env/lib/program");
    const auto root = directory_ / "root";
    fs::create_directory_symlink("env/bin", root / "bin");
    fs::create_symlink("../lib/program", root / "env/bin/relative");
    fs::create_symlink("/built/for/env/lib/program", root / "env/bin/by-mask");
    fs::create_symlink("/built/for/env/lib/nothing", root / "env/bin/dangling");
    const auto made = test::good(make());
    EXPECT_EQ(made, 3U);
    for (const char* name : {"tool", "relative", "by-mask"})
        EXPECT_TRUE(fs::exists(output("bin") / name)) << name;
}

TEST_F(Wrappers, PathsAreRelativeToThePrefix) {
    EXPECT_EQ(*check_wrapper_paths({"opt/x/", "/prefix/lib/../tools", "bin", "opt/x"}, "/prefix"),
              (std::vector<std::string>{"bin", "opt/x", "tools"}));
    for (const char* bad : {"..", "../x", "/elsewhere", ".", "/prefix", "opt/../.."})
        EXPECT_FALSE(check_wrapper_paths({bad}, "/prefix")) << bad;
}

} // namespace

} // namespace containerize::prefix

#include "gpu/cdi.h"
#include "trees.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace containerize::gpu {
namespace {

using nlohmann::json;
using Texts = std::vector<std::string>;

CdiSpecification parse(const json& edits) {
    const json document = {{"cdiVersion", "0.6.0"}, {"kind", "nvidia.com/gpu"}, {"containerEdits", edits}};
    auto parsed = parse_cdi(document.dump(), "x.json");
    EXPECT_TRUE(parsed) << to_string(parsed.error());
    return parsed ? *parsed : CdiSpecification{};
}

Texts refused_mount(const std::string& source, const std::string& target) {
    const auto parsed = parse({{"mounts", {{{"hostPath", source}, {"containerPath", target}}}}});
    EXPECT_EQ(parsed.common.mounts.size() + parsed.refused.size(), 1U);
    return parsed.refused;
}

TEST(Cdi, MountsOverWhatIsNotADrivers) {
    const std::string good = "/usr/lib64/libcuda.so.1";
    EXPECT_EQ(refused_mount(good, good), Texts{});
    EXPECT_EQ(refused_mount("/run/nvidia/driver/usr/lib64/libcuda.so.1", good), Texts{});
    const auto nowhere = "drivers have no files there";
    for (const char* place :
         {"/proc/1/mem", "/sys/kernel", "/etc/passwd", "/etc/ld.so.preload", "/home/user/.bashrc",
          "/root/.ssh/id", "/run/docker.sock", "/usr", "/dev/sda"}) {
        EXPECT_EQ(refused_mount(good, place),
                  (Texts{"the mount of " + good + " at " + place + ": " + place + ": " + nowhere}));
        EXPECT_EQ(refused_mount(place, good), (Texts{"the mount of " + std::string(place) + " at " + good +
                                                     ": " + place + ": " + nowhere}));
    }
    const auto no_path = "it is not an absolute path without '..'";
    for (const char* place : {"/usr/lib/../../etc/passwd", "usr/lib/x.so", "", "/usr/lib/a\nb",
                              "/usr/lib/./x", "/usr/lib//x", "/usr/lib/..", "/", "/usr/lib64/"})
        EXPECT_EQ(refused_mount(good, place),
                  (Texts{"the mount of " + good + " at " + place + ": " + place + ": " + no_path}));
    for (const char* place :
         {"/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/lib64/libstdc++.so.6"})
        EXPECT_EQ(refused_mount(good, place),
                  (Texts{"the mount of " + good + " at " + place + ": " + place +
                         ": the C library and related libraries must be the image's own"}));
}

TEST(Cdi, NodesVariablesAndLinksThatAreNotADrivers) {
    const auto parsed = parse({{"deviceNodes",
                                {{{"path", "/dev/nvidia0"}},
                                 {{"path", "/dev/sda"}},
                                 {{"path", "/dev/nvidia/../sda"}},
                                 {{"path", "/dev/nvidia1"}, {"hostPath", "/dev/sda"}}}},
                               {"env",
                                {"LD_PRELOAD=/tmp/x.so", "NVIDIA_A=1", "CUDA_VISIBLE_DEVICES=0", "PATH",
                                 "NVIDIA_CTK_LIBCUDA_DIR=/x"}},
                               {"hooks",
                                {{{"path", "/bin/sh"},
                                  {"args",
                                   {"x", "create-symlinks", "--link", "/etc/shadow::/etc/passwd", "--link",
                                    "none", "--link", "libcuda.so.1::/usr/lib64/libcuda.so"}}}}}});
    EXPECT_EQ(parsed.common.nodes, Texts{"/dev/nvidia0"});
    EXPECT_EQ(parsed.common.environment, (std::vector{std::pair<std::string, std::string>("NVIDIA_A", "1")}));
    EXPECT_EQ(parsed.common.links,
              (std::vector{std::pair<std::string, std::string>("/usr/lib64/libcuda.so", "libcuda.so.1")}));
    EXPECT_EQ(parsed.refused,
              (Texts{"the device node /dev/sda: it is not an accelerator",
                     "the device node /dev/nvidia/../sda: it is not an accelerator",
                     "the device node /dev/nvidia1: its path would change",
                     "the variable LD_PRELOAD: only the driver's variables (NVIDIA_...) are set",
                     "the variable CUDA_VISIBLE_DEVICES: only the driver's variables (NVIDIA_...) are set",
                     "the variable PATH: only the driver's variables (NVIDIA_...) are set",
                     "the link /etc/shadow::/etc/passwd: drivers have no files there",
                     "the link none: it does not have the form TARGET::PATH"}));
}

TEST(Cdi, FilesThatAreNoSpecification) {
    const auto why = [](const std::string& text, const std::string& file) {
        const auto parsed = parse_cdi(text, file);
        EXPECT_FALSE(parsed) << text;
        return parsed ? "" : parsed.error().why;
    };
    EXPECT_EQ(why("{}", "a.json"), "its kind does not have the form vendor/class");
    EXPECT_EQ(why("[1]", "a.yaml"), "its kind does not have the form vendor/class");
    EXPECT_EQ(why("", "a.yaml"), "its kind does not have the form vendor/class");
    EXPECT_NE(why("{", "a.json"), "");
    EXPECT_NE(why("kind: [", "a.yaml"), "");
    EXPECT_EQ(why("a: &x [1]\nb: [*x, *x]\nkind: n/g\n", "a.yaml"), "it uses aliases");
    EXPECT_EQ(why(std::string(5U << 20U, ' '), "a.yaml"), "it is too large");
    EXPECT_EQ(why("kind: [" + std::string(1U << 20U, ',') + "]", "a.yaml"), "it has too many entries");
    EXPECT_TRUE(why("kind: " + std::string(100, '[') + std::string(100, ']'), "a.yaml")
                    .contains("nested too deeply"));
}

// A value of the wrong type is ignored.
TEST(Cdi, WrongTypesEverywhere) {
    for (const json& wrong :
         {json(1), json("x"), json::array({1, "x", json::array()}), json::object({{"a", 1}}), json()}) {
        const auto parsed =
            parse({{"mounts", wrong}, {"deviceNodes", wrong}, {"env", wrong}, {"hooks", wrong}});
        EXPECT_TRUE(parsed.common.mounts.empty());
        EXPECT_TRUE(parsed.common.nodes.empty());
        const json document = {{"kind", "n/g"}, {"devices", wrong}, {"containerEdits", wrong}};
        EXPECT_TRUE(parse_cdi(document.dump(), "x.json"));
    }
}

TEST(Cdi, DirectoriesInTheirOrderAndKindsApart) {
    const test::Tree tree;
    const auto file = [](const char* kind, const char* device) {
        return std::string("kind: ") + kind + "\ndevices:\n- name: \"" + device + "\"\n";
    };
    tree.write("etc/cdi/a.yaml", file("nvidia.com/gpu", "of etc"));
    tree.write("etc/cdi/b.yaml", file("amd.com/gpu", "x"));
    tree.write("etc/cdi/c.txt", file("nvidia.com/gpu", "y"));
    tree.write("etc/cdi/d.json", "broken");
    tree.write("run/cdi/a.yml", file("nvidia.com/gpu", "of run"));
    tree.link("var/run", "/run");
    Texts notes;
    const auto found = read_cdi(DirectoryView(tree.path()), "nvidia.com/gpu", notes);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].devices.front().first, "of run");
    EXPECT_EQ(found[1].devices.front().first, "of etc");
    ASSERT_EQ(notes.size(), 1U);
    EXPECT_TRUE(notes[0].starts_with("/etc/cdi/d.json: cannot read the CDI specification")) << notes[0];
}

} // namespace
} // namespace containerize::gpu

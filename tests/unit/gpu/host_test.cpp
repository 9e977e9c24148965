#include "gpu/driver_version.h"
#include "gpu/host.h"
#include "trees.h"

#include <gtest/gtest.h>

namespace containerize::gpu {
namespace {

using test::HostTree;
using Texts = std::vector<std::string>;

TEST(Discover, NothingOnANodeWithoutGpus) {
    const HostTree tree;
    tree.pci("0000:03:00.0", "1a03", "2000", "030000", "ast", 0); // the graphics of a server's console
    const auto host = discover(DirectoryView(tree.path()));
    EXPECT_TRUE(host.devices.empty());
    EXPECT_EQ(host.describe(Vendor::nvidia), "");
}

TEST(Discover, NvidiaGpusByTheDriversOwnWords) {
    const HostTree tree;
    tree.nvidia_driver("570.86.15");
    tree.nvidia_gpu(1, "NVIDIA H200");
    tree.nvidia_gpu(0, "NVIDIA H200");
    const DirectoryView view(tree.path());
    const auto host = discover(view);
    ASSERT_EQ(host.devices.size(), 2U);
    EXPECT_EQ(host.devices[0].address, "0000:17:00.0");
    EXPECT_EQ(host.devices[0].uuid, "GPU-00000000-1111-2222-3333-444444444444");
    EXPECT_EQ(host.devices[0].nodes, (Texts{"/dev/nvidia0", "/dev/dri/card0", "/dev/dri/renderD128"}));
    EXPECT_TRUE(host.devices[0].mig.empty());
    EXPECT_EQ(host.describe(Vendor::nvidia), "2 x NVIDIA H200, driver 570.86.15");
    EXPECT_EQ(obstacle(view, host, Vendor::nvidia), "");
    fs::remove(tree / "dev/nvidia-uvm");
    EXPECT_TRUE(obstacle(view, host, Vendor::nvidia).contains("/dev/nvidia-uvm is missing"));
}

TEST(Discover, NvidiaVersionWithoutSysfs) {
    const HostTree tree;
    tree.nvidia_driver("580.65.06");
    fs::remove_all(tree / "sys");
    EXPECT_EQ(discover(DirectoryView(tree.path())).driver(Vendor::nvidia), "580.65.06");
}

TEST(Discover, NvidiaByItsNodesAlone) {
    const HostTree tree;
    tree.nvidia_driver("580.65.06");
    tree.write("dev/nvidia0", "");
    tree.write("dev/nvidia1", "");
    const auto host = discover(DirectoryView(tree.path()));
    EXPECT_EQ(host.describe(Vendor::nvidia), "2 x NVIDIA GPU, driver 580.65.06");
    EXPECT_EQ(host.devices[1].nodes, Texts{"/dev/nvidia1"});
}

TEST(Discover, AGpuWhoseDriverIsNotLoaded) {
    const HostTree tree;
    tree.pci("0000:17:00.0", "10de", "2335", "030200", "", 0);
    const DirectoryView view(tree.path());
    const auto host = discover(view);
    EXPECT_EQ(host.describe(Vendor::nvidia), "1 x PCI device 10de:2335, no driver");
    EXPECT_TRUE(obstacle(view, host, Vendor::nvidia).contains("not loaded"));
}

TEST(Discover, MigInstancesThatExist) {
    const HostTree tree;
    tree.nvidia_driver("570.86.15");
    tree.nvidia_gpu(0, "NVIDIA A100-SXM4-80GB");
    tree.mig();
    const auto host = discover(DirectoryView(tree.path()));
    ASSERT_EQ(host.devices.size(), 1U);
    ASSERT_EQ(host.devices[0].mig.size(), 2U) << "the third could be made, but was not";
    EXPECT_EQ(host.devices[0].mig[1].gpu_instance, 2U);
    EXPECT_EQ(host.devices[0].mig[1].compute_instance, 0U);
    EXPECT_EQ(host.devices[0].mig[1].nodes,
              (Texts{"/dev/nvidia-caps/nvidia-cap6", "/dev/nvidia-caps/nvidia-cap7"}));
}

TEST(Discover, Mi250x) {
    const HostTree tree;
    tree.mi250x();
    const auto host = discover(DirectoryView(tree.path()));
    ASSERT_EQ(host.devices.size(), 2U);
    EXPECT_EQ(host.devices[1].target, "gfx90a");
    EXPECT_EQ(host.describe(Vendor::amd), "2 x AMD Instinct MI250X/MI250 (gfx90a), driver 6.10.5");
    fs::remove(tree / "sys/module/amdgpu/version");
    EXPECT_EQ(discover(DirectoryView(tree.path())).driver(Vendor::amd), "amdgpu");
}

TEST(Discover, PonteVecchioWithoutTheProcessorsOwnGraphics) {
    const HostTree tree;
    tree.pvc();
    const auto host = discover(DirectoryView(tree.path()));
    EXPECT_EQ(host.describe(Vendor::intel), "1 x Intel Data Center GPU Max 1550, driver i915");
    EXPECT_EQ(host.of(Vendor::intel).size(), 1U);
}

TEST(GfxTarget, HasHexadecimalDigitsAtItsEnd) {
    EXPECT_EQ(gfx_target(90010), "gfx90a");
    EXPECT_EQ(gfx_target(90402), "gfx942");
    EXPECT_EQ(gfx_target(110501), "gfx1151");
    EXPECT_EQ(gfx_target(0), "");
}

TEST(CompareVersions, NumberByNumber) {
    EXPECT_TRUE(compare_versions("525.60.13", "525.105.17") < 0);
    EXPECT_TRUE(compare_versions("2.38", "2.4") > 0);
    EXPECT_TRUE(compare_versions("570.26", "570.26.00") == 0);
    EXPECT_TRUE(compare_versions("", "1") < 0);
    EXPECT_EQ(major_version("560.28.03"), 560U);
}

TEST(DirectoryView, LinksStayInsideTheTree) {
    const test::Root tree;
    tree.write("etc/name", "inside\n");
    tree.link("a/link", "/etc/name");
    tree.link("a/up", "../../../../../etc/name");
    tree.link("loop", "loop");
    const DirectoryView view(tree.path());
    EXPECT_EQ(view.text("/a/link"), "inside\n");
    EXPECT_EQ(view.text("/a/up"), "inside\n");
    EXPECT_EQ(view.resolve("/lib/x86_64-linux-gnu"), "/usr/lib/x86_64-linux-gnu");
    EXPECT_FALSE(view.exists("/loop"));
    EXPECT_FALSE(view.exists("/etc/hostname"));
    EXPECT_EQ(view.read("/etc/name", 2, 3), "sid");
    EXPECT_EQ(view.list("/a"), (Texts{"link", "up"}));
    EXPECT_EQ(view.list("/etc/name"), Texts{});
}

} // namespace
} // namespace containerize::gpu

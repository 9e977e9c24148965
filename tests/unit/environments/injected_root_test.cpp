// What is injected for a GPU is seen by the programs of a real root.
#include "../good.h"
#include "../gpu/trees.h"
#include "environments/build_namespace.h"
#include "gpu/injection.h"
#include "image/writer.h"
#include "launch/namespace.h"
#include "root/root.h"
#include "util/digest.h"

#include <gtest/gtest.h>

namespace containerize::environments {
namespace {

using test::library_place;

constexpr const char* driver = "570.86.15";

/// The digest of what a program sees at `path` in this namespace.
std::string content_inside(const BuildNamespace& space, const std::string& path) {
    const auto process = space.pid();
    const auto seen = capture({.argv = {"/bin/busybox", "sha256sum", path},
                               .working_directory = "/",
                               .in_child = [process] { return launch::join_namespaces(process); }});
    return seen && seen->ok() ? seen->output.substr(0, 64) : "";
}

TEST(InjectedRoot, HasEveryFile) {
    const test::HostTree host;
    host.nvidia_driver(driver);
    host.nvidia_gpu(0, "NVIDIA H200");
    host.nvidia_library("libcuda", "1", driver);
    host.link(std::string(library_place) + "libcuda.so", "libcuda.so.1");
    host.nvidia_library("libnvidia-ml", "1", driver);
    host.nvidia_library("libnvidia-ptxjitcompiler", "1", driver);
    host.nvidia_library("libnvidia-glcore", driver, driver);
    host.nvidia_library("libGLX_nvidia", "0", driver);
    host.make_library("usr/bin/nvidia-smi", "", {{"libc.so.6", "GLIBC_2.17"}}, {}, true);
    host.write("usr/share/nvidia/nvoptix.bin", "data");
    const test::Root image;
    image.make_libc({"GLIBC_2.17", "GLIBC_2.34", "GLIBC_2.36"});
    image.write("usr/bin/.keep", "");
    fs::create_directory(image / "bin");
    fs::copy_file("/bin/busybox", image / "bin/busybox");
    const image::DirectoryView view(image.path());
    const auto found = gpu::find({.policy = gpu::parse_policy("nvidia").value(),
                                  .libraries = {},
                                  .host_root = host.path(),
                                  .variables = {{"NVIDIA_DRIVER_CAPABILITIES", "all"}},
                                  .image = view,
                                  .prefix = "/env"});
    ASSERT_GT(found.binds.size(), 5U);
    ASSERT_FALSE(found.links.empty());

    const test::TemporaryDirectory place;
    const auto file = place / "base.sqfs";
    ASSERT_TRUE(image::write_tree(image.path(), file, {}, 022));
    const auto work = place / "work";
    fs::create_directory(work);
    const root::RootRequest request{
        .base = {.reference = "test", .digest = {}, .file = file, .environment = {}},
        .user = "me",
        .inject = [&](const image::TreeView&) { return found; }};
    const auto space = test::good(BuildNamespace::create([&]() -> Status {
        TRY(launch::enter_namespaces());
        const auto entered = TRY(root::enter_root(request, work));
        return {};
    }));
    for (const auto& bind : found.binds) {
        // Directories of the host show these files already.
        if (bind.target.starts_with("/dev/") || bind.target.starts_with("/run/")) continue;
        const auto content = read_file(bind.source);
        ASSERT_TRUE(content) << bind.source;
        EXPECT_EQ(content_inside(space, bind.target), sha256(*content)) << bind.target;
    }
    for (const auto& link : found.links)
        EXPECT_NE(content_inside(space, link.path), "") << link.path;
}

} // namespace
} // namespace containerize::environments

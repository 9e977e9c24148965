#include "conda/virtual_packages.h"
#include "good.h"
#include "gpu/accelerator.h"
#include "gpu/host_tree.h"
#include "gpu/trees.h"

#include <algorithm>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::conda {
namespace {

using gpu::DirectoryView;
using test::error_of;
using test::good;
using test::HostTree;
using test::library_place;
using test::Root;
using Versions = std::map<std::string, std::string>;

/// The versions by name; for __archspec, which has none, the build.
Versions versions_of(const Environment& environment, const Target& target, const image::TreeView& machine) {
    Versions versions;
    for (const auto& package : good(virtual_packages(environment, target, machine)))
        versions[package.name] = package.name == "__archspec" ? package.build : package.version;
    return versions;
}

/// Makes the C library of `root` state this version.
void make_glibc(const Root& root, const std::string& version) {
    root.make_libc({"GLIBC_2.17"});
    std::ofstream(root / std::string(library_place) / "libc.so.6", std::ios::app)
        << "GNU C Library (GNU libc) stable release version " << version << ".\n";
}

TEST(VirtualPackages, TakeTheCLibraryFromTheMachineOrFromTheRootOfPrograms) {
    const HostTree machine;
    const Root base;
    const DirectoryView host(machine.path()), root(base.path());
    EXPECT_FALSE(versions_of({}, {}, host).contains("__glibc")) << "musl";
    make_glibc(machine, "2.28");
    EXPECT_EQ(versions_of({}, {}, host).at("__glibc"), "2.28");
    EXPECT_FALSE(versions_of({}, {.root = &root}, host).contains("__glibc"));
    make_glibc(base, "2.41");
    EXPECT_EQ(versions_of({}, {.root = &root}, host).at("__glibc"), "2.41");
    EXPECT_EQ(versions_of({{"CONDA_OVERRIDE_GLIBC", "2.17"}}, {.root = &root}, host).at("__glibc"), "2.17");
    EXPECT_FALSE(versions_of({{"CONDA_OVERRIDE_GLIBC", ""}}, {.root = &root}, host).contains("__glibc"));
}

TEST(VirtualPackages, TakeCudaFromTheDriver) {
    const HostTree machine;
    const DirectoryView host(machine.path());
    EXPECT_FALSE(versions_of({}, {}, host).contains("__cuda"));
    machine.nvidia_library("libcuda", "1", "535.183.01");
    EXPECT_EQ(versions_of({}, {}, host).at("__cuda"), "12.2") << "of the library's file name";
    machine.nvidia_driver("570.86.15");
    EXPECT_EQ(versions_of({}, {}, host).at("__cuda"), "12.8") << "of the loaded driver";
    EXPECT_EQ(versions_of({{"CONDA_OVERRIDE_CUDA", "11.8"}}, {}, host).at("__cuda"), "11.8");
    EXPECT_EQ(versions_of({{"CONDA_OVERRIDE_CUDA", "11.8"}}, {.cuda = "12.4"}, host).at("__cuda"), "12.4");
    EXPECT_FALSE(versions_of({{"CONDA_OVERRIDE_CUDA", ""}}, {}, host).contains("__cuda"));
    EXPECT_EQ(error_of(virtual_packages({}, {.cuda = "new"}, host)).where, "--cuda");
}

TEST(VirtualPackages, AskNvidiaSmiAboutDriversNewerThanTheTable) {
    const HostTree machine;
    const DirectoryView host(machine.path());
    machine.nvidia_driver("9990.1");
    const auto newest_known = gpu::cuda_of_driver("9990.1").version;
    const auto cuda = [&](const std::string& output) {
        const auto program = machine.write("bin/nvidia-smi", "#!/bin/sh\n" + output);
        EXPECT_EQ(chmod(program.c_str(), 0755), 0);
        return versions_of({{"PATH", program.parent_path().string()}}, {}, host).at("__cuda");
    };
    EXPECT_EQ(versions_of({{"PATH", "/nonexistent"}}, {}, host).at("__cuda"), newest_known);
    EXPECT_EQ(cuda("[ \"$*\" = --version ] || exit 2\necho 'NVIDIA-SMI version  : 9990.1'\n"
                   "echo 'DRIVER version      : 9990.1'\necho 'CUDA Version        : 99.4'\n"),
              "99.4");
    EXPECT_EQ(cuda("echo 'CUDA Version        : 99.4'\nexit 9\n"), newest_known) << "it failed";
    EXPECT_EQ(cuda("echo 'CUDA Version        : Not Found'\n"), newest_known);
    machine.nvidia_driver("570.86.15");
    EXPECT_EQ(cuda("echo 'CUDA Version        : 99.4'\n"), "12.8") << "not asked: the driver is known";
}

TEST(VirtualPackages, OfAnotherPlatformAreThoseOfItsOldestMachines) {
    const HostTree machine;
    const DirectoryView host(machine.path());
    make_glibc(machine, "2.41");
    machine.nvidia_driver("570.86.15");
    const std::string other = this_subdir() == "linux-64" ? "linux-aarch64" : "linux-64";
    const std::string level = other == "linux-64" ? "x86_64" : "aarch64";
    EXPECT_EQ(versions_of({}, {.subdir = other}, host),
              (Versions{{"__archspec", level}, {"__glibc", "2.28"}, {"__linux", "4.18"}, {"__unix", "0"}}));
    EXPECT_EQ(versions_of({{"CONDA_OVERRIDE_GLIBC", "2.34"},
                           {"CONDA_OVERRIDE_LINUX", "6.8"},
                           {"CONDA_OVERRIDE_ARCHSPEC", "neoverse_v2"}},
                          {.subdir = other, .cuda = "12.4"}, host),
              (Versions{{"__archspec", "neoverse_v2"},
                        {"__cuda", "12.4"},
                        {"__glibc", "2.34"},
                        {"__linux", "6.8"},
                        {"__unix", "0"}}));
    for (const auto& subdir : platforms())
        EXPECT_FALSE(versions_of({}, {.subdir = subdir}, host).at("__archspec").empty()) << subdir;
}

TEST(Platforms, IncludeThisMachines) {
    EXPECT_EQ(platforms(), (std::vector<std::string>{"linux-64", "linux-aarch64", "linux-ppc64le"}));
    const auto known = platforms();
    EXPECT_NE(std::ranges::find(known, this_subdir()), known.end());
}

} // namespace
} // namespace containerize::conda

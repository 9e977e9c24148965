#include "core/filesystem.h"
#include "elf/read_elf.h"
#include "good.h"
#include "gpu/injection.h"
#include "image/writer.h"
#include "trees.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace containerize::gpu {
namespace {

using launch::EnvironmentChange;
using test::HostTree;
using test::library_place;
using test::Tree;
using Texts = std::vector<std::string>;

constexpr const char* driver = "570.86.15";

/// An image of Debian 12, whose C library is version 2.36.
void make_image(const Tree& image) {
    image.make_libc({"GLIBC_2.17", "GLIBC_2.34", "GLIBC_2.36"});
}

void make_nvidia_host(const HostTree& host) {
    host.nvidia_driver(driver);
    host.nvidia_gpu(0, "NVIDIA H200");
    host.nvidia_gpu(1, "NVIDIA H200");
    host.nvidia_library("libcuda", "1", driver);
    host.link(std::string(library_place) + "libcuda.so", "libcuda.so.1");
    host.nvidia_library("libnvidia-ml", "1", driver);
    host.nvidia_library("libnvidia-ptxjitcompiler", "1", driver);
    host.nvidia_library("libnvidia-glcore", driver, driver);
    host.nvidia_library("libGLX_nvidia", "0", driver);
    host.make_library("usr/bin/nvidia-smi", "", {{"libc.so.6", "GLIBC_2.17"}}, {}, true);
    host.make_library("usr/bin/nvidia-cuda-mps-control", "", {{"libc.so.6", "GLIBC_2.17"}}, {}, true);
}

class Injecting : public testing::Test {
protected:
    Injecting() : view_(image.path()), environment_view_(environment.path()) { make_image(image); }

    Injection inject(std::map<std::string, std::string> variables = {}, std::string_view policy = "auto") {
        return find({.policy = parse_policy(policy).value(),
                     .libraries = host_libraries,
                     .has_devices = has_devices,
                     .host_root = host.path(),
                     .variables = std::move(variables),
                     .image = view_,
                     .environment = &environment_view_,
                     .prefix = "/env"});
    }

    HostTree host;
    std::vector<std::string> host_libraries;
    test::Root image;
    Tree environment;
    bool has_devices = true;

private:
    DirectoryView view_, environment_view_;
};

/// The names bound into the directory of libraries, with the links there, such as "libcuda.so.1 ->
/// libcuda.so.570".
Texts libraries(const Injection& injection) {
    Texts names;
    const auto start = std::string(library_directory) + "/";
    for (const auto& bind : injection.binds)
        if (bind.target.starts_with(start)) names.push_back(bind.target.substr(start.size()));
    for (const auto& link : injection.links) {
        EXPECT_TRUE(link.path.starts_with(start));
        names.push_back(link.path.substr(start.size()) + " -> " + link.target);
    }
    std::ranges::sort(names);
    return names;
}

Texts others(const Injection& injection) {
    Texts names;
    for (const auto& bind : injection.binds)
        if (!bind.target.starts_with(library_directory)) names.push_back(bind.target);
    std::ranges::sort(names);
    return names;
}

bool says(const Injection& injection, std::string_view text) {
    return std::ranges::any_of(injection.notes, [&](const auto& note) { return note.contains(text); });
}

std::string notes(const Injection& injection) {
    std::string text;
    for (const auto& note : injection.notes)
        text += note + "\n";
    return text;
}

TEST(Policies, ByTheirNames) {
    EXPECT_EQ(policy_names(), (Texts{"auto", "nvidia", "amd", "intel", "none"}));
    EXPECT_EQ(parse_policy("auto")->size(), vendors.size());
    EXPECT_TRUE(parse_policy("none")->empty());
    for (const auto* vendor : vendors) {
        ASSERT_EQ(parse_policy(vendor->option)->size(), 1U) << vendor->option;
        EXPECT_EQ(parse_policy(vendor->option)->front(), vendor);
    }
    const auto wrong = test::error_of(parse_policy("cuda"));
    EXPECT_EQ(to_string(wrong), "unknown GPU policy: 'cuda'\nGive auto, nvidia, amd, intel or none.");
    EXPECT_EQ(wrong.fault, Fault::input);
}

TEST(Vendors, HaveAllThatTheTableNeeds) {
    std::set<std::string_view> words;
    std::set<unsigned> numbers;
    for (const auto* vendor : vendors) {
        for (const auto word : {vendor->option, vendor->name, vendor->platform, vendor->platform_name})
            EXPECT_TRUE(!word.empty() && words.insert(word).second) << vendor->name << ": " << word;
        EXPECT_TRUE(numbers.insert(vendor->pci_id).second) << vendor->name;
        EXPECT_TRUE(std::string_view(vendor->node).starts_with("/dev/")) << vendor->name;
        EXPECT_FALSE(vendor->without.empty()) << vendor->name;
        EXPECT_EQ(vendor->runtime_option == nullptr, vendor->runtime_node == nullptr) << vendor->name;
        EXPECT_TRUE(vendor->driver != nullptr && vendor->inject != nullptr && vendor->fit != nullptr)
            << vendor->name;
    }
}

TEST_F(Injecting, LibrariesOfTheHostComeWithoutAnyGpu) {
    host.make_libc({"GLIBC_2.17", "GLIBC_2.36"});
    host.make_library(std::string(library_place) + "libcxi.so.1", "libcxi.so.1");
    EXPECT_TRUE(inject().empty());
    host_libraries = {"libcxi.so.1", "libnothing.so.1"};
    const auto found = inject();
    ASSERT_EQ(found.binds.size(), 1U);
    EXPECT_EQ(found.binds[0].target, "/.containerize/gpu/lib/libcxi.so.1");
    ASSERT_EQ(found.environment.size(), 1U);
    EXPECT_EQ(found.environment[0].name, "LD_LIBRARY_PATH");
    EXPECT_EQ(found.notes, (Texts{"This node has no GPU."}));
}

TEST_F(Injecting, NothingOnANodeWithoutGpus) {
    const auto nothing = inject();
    EXPECT_TRUE(nothing.empty());
    EXPECT_EQ(nothing.notes, Texts{"This node has no GPU."});
    EXPECT_EQ(inject({}, "amd").notes, Texts{"This node has no GPU of the requested vendor."});
    EXPECT_TRUE(inject({}, "none").notes.empty());
}

TEST_F(Injecting, NvidiaComputesByDefault) {
    make_nvidia_host(host);
    host.nvidia_library("libcudadebugger", "1", "550.54.14"); // left by an older driver
    host.make_cache();
    const auto injection = inject();
    EXPECT_EQ(libraries(injection),
              (Texts{"libcuda.so -> libcuda.so.570.86.15", "libcuda.so.1 -> libcuda.so.570.86.15",
                     "libcuda.so.570.86.15", "libnvidia-ml.so.1 -> libnvidia-ml.so.570.86.15",
                     "libnvidia-ml.so.570.86.15",
                     "libnvidia-ptxjitcompiler.so.1 -> libnvidia-ptxjitcompiler.so.570.86.15",
                     "libnvidia-ptxjitcompiler.so.570.86.15"}))
        << notes(injection);
    EXPECT_EQ(others(injection),
              (Texts{"/.containerize/gpu/bin/nvidia-cuda-mps-control", "/.containerize/gpu/bin/nvidia-smi"}));
    ASSERT_EQ(injection.environment.size(), 2U);
    EXPECT_EQ(injection.environment[0].name, "LD_LIBRARY_PATH");
    EXPECT_EQ(injection.environment[0].kind, EnvironmentChange::Kind::append) << "the image's own come first";
    EXPECT_EQ(injection.environment[1].name, "PATH");
    for (const auto& bind : injection.binds) {
        EXPECT_TRUE(fs::is_regular_file(bind.source)) << bind.source;
        EXPECT_TRUE(bind.read_only);
    }
}

TEST_F(Injecting, ADriverThatIsMountedInADirectoryOfItsOwn) {
    make_nvidia_host(host);
    fs::create_directories(host / "usr/local/nvidia/bin");
    fs::rename(host / "usr/bin/nvidia-smi", host / "usr/local/nvidia/bin/nvidia-smi");
    const auto utility = [&] { return others(inject({{"NVIDIA_DRIVER_CAPABILITIES", "utility"}})); };
    EXPECT_EQ(utility(), Texts{"/.containerize/gpu/bin/nvidia-smi"});
    host.write("usr/bin/nvidia-smi", "#!/bin/sh\nexec /usr/local/nvidia/bin/nvidia-smi\n");
    EXPECT_EQ(utility(), Texts{"/.containerize/gpu/bin/nvidia-smi"});
}

TEST_F(Injecting, TheSameWithoutACacheOfLibraries) {
    make_nvidia_host(host);
    const auto without = libraries(inject());
    host.make_cache();
    EXPECT_EQ(without, libraries(inject()));
    EXPECT_EQ(without.size(), 7U);
}

TEST_F(Injecting, LibrariesFor32BitProgramsAreNotMistakenForTheOthers) {
    if (elf::this_machine != EM_X86_64) GTEST_SKIP() << "this machine's compiler makes no 32-bit libraries";
    make_nvidia_host(host);
    const auto source = host.write("tmp/empty.c", "int nothing;");
    fs::create_directories(host / "usr/lib64"); // searched first
    test::must_run({CONTAINERIZE_TEST_COMPILER, "-m32", "-shared", "-nostdlib", source.string(), "-o",
                    (host / "usr/lib64/libcuda.so.570.86.15").string()});
    const auto injection = inject();
    EXPECT_EQ(libraries(injection).size(), 7U);
    EXPECT_FALSE(says(injection, "Not used")) << notes(injection);
}

TEST_F(Injecting, NvidiaCapabilities) {
    make_nvidia_host(host);
    host.write("usr/share/glvnd/egl_vendor.d/10_nvidia.json", "{}");
    const auto has = [](const Injection& injection, const std::string& name) {
        const auto all = libraries(injection);
        return std::ranges::find(all, name) != all.end();
    };
    const auto utility = inject({{"NVIDIA_DRIVER_CAPABILITIES", "utility"}});
    EXPECT_EQ(libraries(utility),
              (Texts{"libnvidia-ml.so.1 -> libnvidia-ml.so.570.86.15", "libnvidia-ml.so.570.86.15"}));
    EXPECT_EQ(others(utility), Texts{"/.containerize/gpu/bin/nvidia-smi"});
    const auto egl = std::string("/usr/share/glvnd/egl_vendor.d/10_nvidia.json");
    for (const auto& with_graphics : {inject({{"NVIDIA_DRIVER_CAPABILITIES", "all"}}),
                                      inject({{"NVIDIA_DRIVER_CAPABILITIES", "display"}})}) {
        EXPECT_TRUE(has(with_graphics, "libGLX_nvidia.so.0 -> libGLX_nvidia.so.570.86.15"));
        EXPECT_TRUE(has(with_graphics, "libnvidia-glcore.so.570.86.15"));
        EXPECT_TRUE(std::ranges::count(others(with_graphics), egl));
    }
    EXPECT_TRUE(
        says(inject({{"NVIDIA_DRIVER_CAPABILITIES", "compute,compat32"}}), "'compat32', which is ignored"));
}

TEST_F(Injecting, NothingWhereNoDeviceIsVisible) {
    make_nvidia_host(host);
    for (const char* value : {"none", "void", ""}) {
        const auto injection = inject({{"NVIDIA_VISIBLE_DEVICES", value}});
        EXPECT_TRUE(injection.empty()) << value;
        EXPECT_TRUE(says(injection, "NVIDIA_VISIBLE_DEVICES is"));
    }
}

TEST_F(Injecting, VariablesThatSelectDevicesAreLeftAlone) {
    make_nvidia_host(host);
    host.mi250x();
    for (const auto& change :
         inject({{"CUDA_VISIBLE_DEVICES", "1"}, {"ROCR_VISIBLE_DEVICES", "0"}}).environment)
        EXPECT_TRUE(change.name == "LD_LIBRARY_PATH" || change.name == "PATH") << change.name;
}

TEST_F(Injecting, DeviceNodesWhereTheHostsAreNotInside) {
    make_nvidia_host(host);
    host.write("dev/gdrdrv", "");
    EXPECT_EQ(std::ranges::count(others(inject()), "/dev/nvidia0"), 0);
    has_devices = false;
    const auto nodes = [&](const Injection& injection) {
        auto all = others(injection);
        std::erase_if(all, [](const auto& path) { return !path.starts_with("/dev/"); });
        return all;
    };
    const Texts common = {"/dev/gdrdrv", "/dev/nvidia-modeset", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"};
    const auto with = [&](Texts more) {
        more.insert(more.end(), common.begin(), common.end());
        more.emplace_back("/dev/nvidiactl");
        std::ranges::sort(more);
        return more;
    };
    EXPECT_EQ(nodes(inject()), with({"/dev/nvidia0", "/dev/nvidia1"}));
    EXPECT_EQ(nodes(inject({{"NVIDIA_VISIBLE_DEVICES", "1"}})), with({"/dev/nvidia1"}));
    EXPECT_EQ(nodes(inject({{"NVIDIA_VISIBLE_DEVICES", "GPU-00000000-1111-2222-3333-444444444444"}})),
              with({"/dev/nvidia0"}));
    const auto unknown = inject({{"NVIDIA_VISIBLE_DEVICES", "0,7"}});
    EXPECT_EQ(nodes(unknown), with({"/dev/nvidia0"}));
    EXPECT_TRUE(says(unknown, "contains '7', but this node has 2 x NVIDIA H200")) << notes(unknown);
    for (const auto& bind : unknown.binds) {
        if (bind.target.starts_with("/dev/")) {
            EXPECT_FALSE(bind.read_only) << bind.target;
        }
    }
}

TEST_F(Injecting, MigInstances) {
    host.nvidia_driver(driver);
    host.nvidia_gpu(0, "NVIDIA A100-SXM4-80GB");
    host.nvidia_library("libcuda", "1", driver);
    host.mig();
    has_devices = false;
    const auto caps = [&](const char* visible) {
        auto all = others(inject({{"NVIDIA_VISIBLE_DEVICES", visible}}));
        std::erase_if(all, [](const auto& path) { return !path.starts_with("/dev/nvidia-caps/"); });
        return all;
    };
    const Texts both = {"/dev/nvidia-caps/nvidia-cap3", "/dev/nvidia-caps/nvidia-cap4",
                        "/dev/nvidia-caps/nvidia-cap6", "/dev/nvidia-caps/nvidia-cap7"};
    EXPECT_EQ(caps("all"), both);
    EXPECT_EQ(caps("MIG-5c89852c-d268-c3f3-1b07-005d5ae1dc3f"), both) << "no file says which one it is";
    EXPECT_EQ(caps("0:1"), (Texts{"/dev/nvidia-caps/nvidia-cap6", "/dev/nvidia-caps/nvidia-cap7"}));
    EXPECT_EQ(caps("0:5"), Texts{});
    EXPECT_TRUE(says(inject({{"NVIDIA_VISIBLE_DEVICES", "0:5"}}), "contains '0:5'"));
}

TEST_F(Injecting, LibrariesThatNeedANewerCLibraryAreLeftOut) {
    make_nvidia_host(host);
    host.nvidia_library("libnvidia-nvvm", "4", driver, "GLIBC_2.38");
    const auto injection = inject();
    EXPECT_TRUE(says(injection, "libnvidia-nvvm.so.570.86.15: it needs GLIBC_2.38 of libc.so.6, and the "
                                "image has versions up to GLIBC_2.36."))
        << notes(injection);
    EXPECT_EQ(libraries(injection).size(), 7U);
}

TEST_F(Injecting, AnImageWithoutAnyCLibraryOfGnus) {
    make_nvidia_host(host);
    fs::remove(image / library_place / "libc.so.6");
    const auto injection = inject();
    EXPECT_TRUE(injection.empty());
    EXPECT_TRUE(says(injection, "The image has no GNU C library")) << notes(injection);
    EXPECT_TRUE(says(injection, "No library of driver 570.86.15"));
}

TEST_F(Injecting, CompatibilityLibrariesForDataCentresOnly) {
    make_nvidia_host(host);
    const auto first = [](const Injection& injection) {
        return injection.environment.empty() ? EnvironmentChange{} : injection.environment.front();
    };
    image.write("usr/local/cuda-12.9/compat/libcuda.so.575.51.03", "");
    const auto newer = inject();
    EXPECT_EQ(first(newer).kind, EnvironmentChange::Kind::prepend);
    EXPECT_EQ(first(newer).value, "/usr/local/cuda-12.9/compat");
    EXPECT_TRUE(says(newer, "575.51.03 in /usr/local/cuda-12.9/compat is used"));
    environment.write("cuda-compat/libcuda.so.580.65.06", "");
    EXPECT_EQ(first(inject()).value, "/env/cuda-compat") << "the newest";
    const auto information = host / "proc/driver/nvidia/gpus/0000:17:00.0/information";
    std::ofstream(information) << "Model: \t NVIDIA GeForce RTX 4090\nDevice Minor: \t 0\n";
    const auto consumer = inject();
    EXPECT_EQ(first(consumer).kind, EnvironmentChange::Kind::append);
    EXPECT_TRUE(says(consumer, "supports only data-centre GPUs, and this is a NVIDIA GeForce RTX 4090"))
        << notes(consumer);
}

TEST_F(Injecting, OlderCompatibilityLibrariesAreNotUsed) {
    make_nvidia_host(host);
    image.write("usr/local/cuda/compat/libcuda.so.570.124.06", "");
    image.write("usr/local/cuda-12.4/compat/libcuda.so.550.54.14", "");
    EXPECT_EQ(inject().environment.front().kind, EnvironmentChange::Kind::append);
}

TEST_F(Injecting, SocketsOfTheDriversServices) {
    make_nvidia_host(host);
    host.write("run/nvidia-persistenced/socket", "");
    host.write("job/mps/control", "");
    auto injection = inject({{"CUDA_MPS_PIPE_DIRECTORY", "/job/mps"}});
    const auto targets = others(injection);
    EXPECT_EQ(std::ranges::count(targets, "/run/nvidia-persistenced/socket"), 1);
    const auto pipe = std::ranges::find(injection.binds, "/job/mps", &manifest::Bind::target);
    ASSERT_NE(pipe, injection.binds.end());
    EXPECT_FALSE(pipe->read_only);
}

TEST_F(Injecting, OpenClLoaderOnlyWhereTheImageHasNone) {
    make_nvidia_host(host);
    host.make_library(std::string(library_place) + "libOpenCL.so.1", "libOpenCL.so.1");
    host.write("etc/OpenCL/vendors/nvidia.icd", "libnvidia-opencl.so.1\n");
    const auto has_loader = [&] { return std::ranges::count(libraries(inject()), "libOpenCL.so.1") == 1; };
    EXPECT_TRUE(has_loader());
    EXPECT_EQ(std::ranges::count(others(inject()), "/etc/OpenCL/vendors/nvidia.icd"), 1);
    image.make_library(std::string(library_place) + "libOpenCL.so.1", "libOpenCL.so.1");
    EXPECT_FALSE(has_loader());
}

TEST_F(Injecting, RocmFromTheHostWithAllThatItNeeds) {
    host.mi250x();
    host.write("opt/amdgpu/share/libdrm/amdgpu.ids", "7408, 00, AMD Instinct MI250X\n");
    host.make_library("opt/rocm-6.2.4/lib/libhsa-runtime64.so.1", "libhsa-runtime64.so.1");
    host.make_library(std::string(library_place) + "libnuma.so.1", "libnuma.so.1");
    host.make_libc({"GLIBC_2.17"});
    host.make_library(
        "opt/rocm-6.2.4/lib/libamdhip64.so.6.2.60204", "libamdhip64.so.6", {{"libc.so.6", "GLIBC_2.34"}},
        {"opt/rocm-6.2.4/lib/libhsa-runtime64.so.1", std::string(library_place) + "libnuma.so.1"});
    host.link("opt/rocm-6.2.4/lib/libamdhip64.so.6", "libamdhip64.so.6.2.60204");
    const auto injection = inject();
    EXPECT_EQ(libraries(injection),
              (Texts{"libamdhip64.so.6 -> libamdhip64.so.6.2.60204", "libamdhip64.so.6.2.60204",
                     "libhsa-runtime64.so.1", "libnuma.so.1"}))
        << notes(injection);
    EXPECT_EQ(others(injection), Texts{"/opt/amdgpu/share/libdrm/amdgpu.ids"});
    has_devices = false;
    EXPECT_EQ(others(inject()), (Texts{"/dev/dri", "/dev/kfd", "/opt/amdgpu/share/libdrm/amdgpu.ids"}));
}

TEST_F(Injecting, RocmOfTheEnvironmentStaysAlone) {
    host.mi250x();
    host.make_library("opt/rocm/lib/libamdhip64.so.6", "libamdhip64.so.6");
    EXPECT_FALSE(libraries(inject()).empty());
    environment.write("lib/python3.12/site-packages/torch/lib/libamdhip64.so", "");
    const auto injection = inject();
    EXPECT_TRUE(libraries(injection).empty());
    EXPECT_TRUE(says(injection, "ROCm is used from /env/lib/python3.12/site-packages/torch/lib"))
        << notes(injection);
}

TEST_F(Injecting, IntelsDriversWithTheirCompiler) {
    host.pvc();
    const std::string place = library_place;
    host.make_library(place + "libigdgmm.so.12", "libigdgmm.so.12");
    host.make_library(place + "libze_intel_gpu.so.1", "libze_intel_gpu.so.1", {{"libc.so.6", "GLIBC_2.34"}},
                      {place + "libigdgmm.so.12"});
    host.make_library(place + "libze_loader.so.1", "libze_loader.so.1");
    host.make_library(place + "libigc.so.2", "libigc.so.2");
    host.make_library(place + "intel-opencl/libigdrcl.so", "libigdrcl.so");
    host.write("etc/OpenCL/vendors/intel.icd", "/usr/lib/x86_64-linux-gnu/intel-opencl/libigdrcl.so\n");
    has_devices = false;
    const auto injection = inject();
    EXPECT_EQ(libraries(injection),
              (Texts{"libigc.so.2", "libigdgmm.so.12", "libze_intel_gpu.so.1", "libze_loader.so.1"}))
        << notes(injection);
    EXPECT_EQ(others(injection), (Texts{"/dev/dri", "/etc/OpenCL/vendors/intel.icd",
                                        "/usr/lib/x86_64-linux-gnu/intel-opencl/libigdrcl.so"}));
    environment.write("lib/libze_intel_gpu.so.1", "");
    const auto own = inject();
    EXPECT_TRUE(libraries(own).empty());
    EXPECT_EQ(others(own), Texts{"/dev/dri"});
}

TEST_F(Injecting, LibrariesOfTheCompilerMayComeFromTheEnvironment) {
    host.pvc();
    host.make_library(std::string(library_place) + "libze_intel_gpu.so.1", "libze_intel_gpu.so.1",
                      {{"libstdc++.so.6", "GLIBCXX_3.4.32"}});
    const auto lacking = inject();
    EXPECT_TRUE(libraries(lacking).empty());
    EXPECT_TRUE(says(lacking, "it needs libstdc++.so.6, which the image does not have")) << notes(lacking);
    environment.make_versions("lib/libstdc++.so.6", "libstdc++.so.6", {"GLIBCXX_3.4.30", "GLIBCXX_3.4.32"});
    EXPECT_EQ(libraries(inject()), Texts{"libze_intel_gpu.so.1"});
}

TEST_F(Injecting, OnlyTheVendorThatWasAskedFor) {
    make_nvidia_host(host);
    host.pvc();
    EXPECT_TRUE(libraries(inject({}, "intel")).empty());
    EXPECT_FALSE(says(inject({}, "intel"), "NVIDIA"));
    EXPECT_FALSE(libraries(inject({}, "nvidia")).empty());
}

// With a specification of the Container Device Interface.

constexpr const char* specification = R"(cdiVersion: 0.6.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
    - path: /dev/dri/renderD128
- name: "1"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia1
containerEdits:
  env:
  - NVIDIA_VISIBLE_DEVICES=void
  - NVIDIA_SITE=here
  deviceNodes:
  - path: /dev/nvidiactl
  - path: /dev/nvidia-uvm
  hooks:
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, create-symlinks, --link, "libcuda.so.1::/usr/lib/x86_64-linux-gnu/libcuda.so"]
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib/x86_64-linux-gnu]
  mounts:
  - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15
    containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15
    options: [ro, nosuid, nodev, bind]
  - hostPath: /usr/lib/x86_64-linux-gnu/libnvidia-glcore.so.570.86.15
    containerPath: /usr/lib/x86_64-linux-gnu/libnvidia-glcore.so.570.86.15
  - hostPath: /usr/bin/nvidia-smi
    containerPath: /usr/bin/nvidia-smi
  - hostPath: /run/nvidia-persistenced/socket
    containerPath: /run/nvidia-persistenced/socket
)";

TEST_F(Injecting, BySpecification) {
    make_nvidia_host(host);
    host.write("run/nvidia-persistenced/socket", "");
    host.write("etc/cdi/nvidia.yaml", specification);
    const auto injection = inject();
    EXPECT_EQ(libraries(injection), (Texts{"libcuda.so -> libcuda.so.1",
                                           "libcuda.so.1 -> libcuda.so.570.86.15", "libcuda.so.570.86.15"}))
        << notes(injection);
    EXPECT_EQ(others(injection),
              (Texts{"/.containerize/gpu/bin/nvidia-smi", "/run/nvidia-persistenced/socket"}));
    EXPECT_TRUE(says(injection, "Using the CDI specification /etc/cdi/nvidia.yaml."));
    EXPECT_EQ(injection.environment.front().name, "NVIDIA_SITE");
    EXPECT_EQ(injection.environment.front().value, "here");
    has_devices = false;
    const auto one = others(inject({{"NVIDIA_VISIBLE_DEVICES", "1"}}));
    EXPECT_EQ(one, (Texts{"/.containerize/gpu/bin/nvidia-smi", "/dev/nvidia-uvm", "/dev/nvidia1",
                          "/dev/nvidiactl", "/run/nvidia-persistenced/socket"}));
    EXPECT_TRUE(says(inject({{"NVIDIA_VISIBLE_DEVICES", "1,9"}}), "contains '9', but this node has"));
    const auto graphics = libraries(inject({{"NVIDIA_DRIVER_CAPABILITIES", "all"}}, "nvidia"));
    EXPECT_EQ(std::ranges::count(graphics, "libnvidia-glcore.so.570.86.15"), 1);
}

TEST_F(Injecting, ASpecificationOfAnotherDriverIsNotUsed) {
    make_nvidia_host(host);
    std::string old = specification;
    for (std::size_t at = 0; (at = old.find("570.86.15", at)) != std::string::npos;)
        old.replace(at, 9, "550.54.14");
    host.write("etc/cdi/nvidia.yaml", old);
    const auto injection = inject();
    EXPECT_TRUE(says(injection, "is for driver 550.54.14, and 570.86.15 is running, so it is not used"))
        << notes(injection);
    EXPECT_EQ(libraries(injection).size(), 7U) << "found without it";
}

TEST_F(Injecting, ABrokenSpecificationIsNotUsed) {
    make_nvidia_host(host);
    host.write("etc/cdi/nvidia.yaml", "kind: [");
    const auto injection = inject();
    EXPECT_TRUE(says(injection, "/etc/cdi/nvidia.yaml: cannot read the CDI specification"))
        << notes(injection);
    EXPECT_EQ(libraries(injection).size(), 7U);
}

// As JSON, where only a compatibility hook allows a newer libcuda.
TEST_F(Injecting, BySpecificationInJson) {
    make_nvidia_host(host);
    image.write("usr/local/cuda/compat/libcuda.so.580.65.06", "");
    const std::string start = R"({"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [{"name": "all",
        "containerEdits": {"deviceNodes": [{"path": "\/dev\/nvidia0"}]}}], "containerEdits": {"mounts": [
        {"hostPath": "/usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15",
         "containerPath": "/usr/lib64/libcuda.so.570.86.15"}], "hooks": [)";
    host.write("var/run/cdi/nvidia.json", start + "]}}");
    const auto without = inject();
    EXPECT_EQ(libraries(without), (Texts{"libcuda.so.1 -> libcuda.so.570.86.15", "libcuda.so.570.86.15"}))
        << notes(without);
    EXPECT_EQ(without.environment.front().kind, EnvironmentChange::Kind::append);
    host.write("var/run/cdi/nvidia.json",
               start + R"({"args": ["nvidia-cdi-hook", "enable-cuda-compat"]}]}})");
    EXPECT_EQ(inject().environment.front().value, "/usr/local/cuda/compat");
}

TEST_F(Injecting, ALinkOnTheHostThatLeadsElsewhereIsRefused) {
    make_nvidia_host(host);
    host.write("etc/shadow", "secret");
    host.link("usr/share/nvidia/rules.bin", "/etc/shadow");
    host.write("etc/cdi/nvidia.json",
               R"({"kind": "nvidia.com/gpu", "devices": [{"name": "all", "containerEdits":
        {"mounts": [{"hostPath": "/usr/share/nvidia/rules.bin", "containerPath": "/usr/share/nvidia/rules.bin"}]}}]})");
    const auto injection = inject();
    EXPECT_TRUE(says(
        injection,
        "Not used: /usr/share/nvidia/rules.bin, which is a link to /etc/shadow: drivers have no files there"))
        << notes(injection);
    EXPECT_TRUE(others(injection).empty());
}

} // namespace
} // namespace containerize::gpu

#include "good.h"
#include "gpu/accelerator.h"
#include "gpu/fit.h"
#include "gpu/host_tree.h"
#include "image/writer.h"
#include "trees.h"

#include <array>

#include <gtest/gtest.h>

namespace containerize::gpu {
namespace {

using test::HostTree;
using test::Tree;
using Texts = std::vector<std::string>;

constexpr const char* site = "lib/python3.12/site-packages/";

/// An environment with files named like those of real packages.
class Environment : public Tree {
public:
    void distribution(const std::string& name_and_version) const {
        write(site + name_and_version + ".dist-info/METADATA", "Metadata-Version: 2.1\n");
    }
    void torch(const std::string& version, const std::string& cuda, const std::string& hip,
               const std::string& more = {}) const {
        const auto optional = [](const std::string& value) {
            return value.empty() ? "None" : "'" + value + "'";
        };
        write(std::string(site) + "torch/version.py",
              "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', "
              "'hip']\n"
              "__version__ = '" +
                  version + "'\ndebug = False\ncuda: Optional[str] = " + optional(cuda) +
                  "\ngit_version = '2236df1770800ffea5697b11b0bb0d910b2e59e1'\nhip: Optional[str] = " +
                  optional(hip) + "\n" + more);
    }
    /// The file that TensorFlow's build writes.
    void tensorflow(const std::string& pairs) const {
        write(
            std::string(site) + "tensorflow/python/platform/build_info.py",
            "\"\"\"Auto-generated module providing information about the build.\"\"\"\nimport collections\n\n"
            "build_info = collections.OrderedDict([" +
                pairs + "])\n");
    }
    [[nodiscard]] std::vector<AcceleratedPackage> packages() const {
        return accelerated_packages(DirectoryView(path()));
    }
    /// The only package.
    [[nodiscard]] AcceleratedPackage package() const {
        auto all = packages();
        EXPECT_EQ(all.size(), 1U);
        return all.empty() ? AcceleratedPackage{} : all.front();
    }
};

TEST(Torch, ForCuda) {
    const Environment environment;
    environment.torch("2.6.0+cu126", "12.6", "");
    environment.write(
        std::string(site) + "torch/lib/libtorch_python.so",
        std::string("ELF\0sm_\0for sm_90a only\0sm_50 sm_80 sm_86 sm_90 compute_90\0sm_70 ", 66));
    const auto torch = environment.package();
    EXPECT_EQ(torch.title(), "torch 2.6.0+cu126");
    EXPECT_EQ(torch.purpose(), "CUDA 12.6");
    EXPECT_EQ(torch.lowest_driver, "525.60.13");
    EXPECT_EQ(torch.architectures, (Texts{"sm_50", "sm_80", "sm_86", "sm_90"}));
    EXPECT_EQ(torch.evidence, std::string("/") + site + "torch/version.py");
}

TEST(Torch, ForRocm) {
    const Environment environment;
    environment.torch("2.6.0+rocm6.2.4", "", "6.2.41134-65d174c3e");
    for (const char* file : {"TensileLibrary_lazy_gfx90a.dat", "TensileLibrary_lazy_gfx942.dat",
                             "Kernels.so-000-gfx90a-xnack-.hsaco", "TensileManifest.txt"})
        environment.write(std::string(site) + "torch/lib/rocblas/library/" + file, "");
    const auto torch = environment.package();
    EXPECT_EQ(torch.purpose(), "ROCm 6.2.4");
    EXPECT_EQ(torch.architectures, (Texts{"gfx90a", "gfx942"}));
    EXPECT_EQ(torch.lowest_driver, "");
    environment.torch("2.7.0", "", "6.3.42131-fa1d09cbd"); // as in builds of conda-forge and AMD
    EXPECT_EQ(environment.package().purpose(), "ROCm 6.3");
}

TEST(Torch, ForIntel) {
    const Environment environment;
    environment.torch("2.7.0+xpu", "", "", "xpu: Optional[str] = '20250004'\n");
    EXPECT_EQ(environment.package().purpose(), "Intel GPUs (XPU)");
    environment.torch("2.3.1+cxx11.abi", "", "");
    EXPECT_EQ(environment.package().built_for, nullptr);
    environment.distribution("intel_extension_for_pytorch-2.3.110+xpu");
    EXPECT_EQ(environment.package().built_for, &Vendor::intel);
}

TEST(Torch, ForCpusOnly) {
    const Environment environment;
    environment.torch("2.13.0+cpu", "", "", "rocm: Optional[str] = None\nxpu: Optional[str] = None\n");
    const auto torch = environment.package();
    EXPECT_EQ(torch.purpose(), "CPUs only");
    EXPECT_EQ(to_json(torch), nlohmann::json({{"package", "torch"},
                                              {"version", "2.13.0+cpu"},
                                              {"built_for", "cpu"},
                                              {"evidence", std::string("/") + site + "torch/version.py"}}));
}

TEST(Torch, FilesThatAreNone) {
    const Environment environment;
    for (const char* text :
         {"", "__version__\n", "= '1'\n", "__version__ = 'unfinished\n", "__version__ = None\n"}) {
        environment.write(std::string(site) + "torch/version.py", text);
        EXPECT_TRUE(environment.packages().empty()) << text;
    }
}

TEST(Jax, IsForWhatItsPluginIsFor) {
    const Environment environment;
    environment.distribution("jaxlib-0.7.0");
    environment.distribution("jax-0.7.0");
    EXPECT_EQ(environment.package().built_for, nullptr);
    environment.distribution("jax_cuda12_plugin-0.7.0");
    environment.distribution("jax_cuda12_pjrt-0.7.0");
    EXPECT_EQ(environment.package().purpose(), "CUDA 12");
    environment.distribution("nvidia_cuda_runtime_cu12-12.9.79");
    const auto jax = environment.package();
    EXPECT_EQ(jax.purpose(), "CUDA 12.9");
    EXPECT_EQ(jax.lowest_driver, "525.60.13");
    EXPECT_EQ(jax.evidence, std::string("/") + site + "jax_cuda12_pjrt-0.7.0.dist-info");
}

TEST(Jax, OfNewerAndOlderNames) {
    {
        const Environment environment;
        environment.distribution("jaxlib-0.8.0");
        environment.distribution("jax_cuda13_plugin-0.8.0");
        environment.distribution("nvidia_cuda_runtime-13.0.96");
        EXPECT_EQ(environment.package().purpose(), "CUDA 13.0");
        EXPECT_EQ(environment.package().lowest_driver, "580.65.06");
    }
    {
        const Environment environment;
        environment.distribution("jaxlib-0.4.16+cuda11.cudnn86");
        EXPECT_EQ(environment.package().purpose(), "CUDA 11");
    }
    {
        const Environment environment;
        environment.distribution("jaxlib-0.5.0");
        environment.distribution("jax_rocm60_plugin-0.5.0");
        EXPECT_EQ(environment.package().purpose(), "ROCm 6.0");
    }
    {
        const Environment environment;
        environment.distribution("jaxlib-0.4.34");
        environment.write("conda-meta/jaxlib-0.4.34-cuda126py312h5a8b3c4_200.json", "{}");
        EXPECT_EQ(environment.package().purpose(), "CUDA 12.6");
    }
    {
        const Environment environment;
        environment.distribution("jaxlib-0.4.34");
        environment.write("conda-meta/jaxlib-0.4.34-cpu_py312h5a8b3c4_0.json", "{}");
        EXPECT_EQ(environment.package().built_for, nullptr);
    }
}

TEST(Tensorflow, ByItsBuildInfo) {
    const Environment environment;
    environment.distribution("tensorflow-2.19.0");
    environment.tensorflow(
        "('cpu_compiler', '/usr/lib/llvm-18/bin/clang'), ('cuda_compute_capabilities', ['sm_60', "
        "'sm_70', 'compute_90']), ('cuda_version', '12.5.1'), ('cudnn_version', '9'), "
        "('is_cuda_build', True), ('is_rocm_build', False), ('is_tensorrt_build', False)");
    const auto without = environment.package();
    EXPECT_EQ(without.title(), "tensorflow 2.19.0");
    EXPECT_EQ(without.purpose(), "CUDA 12.5");
    EXPECT_EQ(without.architectures, (Texts{"sm_60", "sm_70", "compute_90"}));
    EXPECT_TRUE(without.lacks.contains("tensorflow[and-cuda]"));
    environment.distribution("nvidia_cuda_runtime_cu12-12.5.82");
    EXPECT_EQ(environment.package().lacks, "");
    environment.tensorflow("('is_cuda_build', False), ('is_rocm_build', True), ('rocm_version', '6.2.0')");
    EXPECT_EQ(environment.package().purpose(), "ROCm 6.2");
    environment.tensorflow(
        "('is_cuda_build', False), ('is_rocm_build', False), ('is_tensorrt_build', False)");
    EXPECT_EQ(environment.package().purpose(), "CPUs only");
    environment.tensorflow("('is_cuda_build', True), ('cuda_version', '12");
    EXPECT_EQ(environment.package().purpose(), "CUDA");
}

TEST(Cupy, ByItsName) {
    const std::array<std::pair<const char*, const char*>, 5> names = {{{"cupy_cuda12x-13.4.1", "CUDA 12"},
                                                                       {"cupy_cuda118-12.0.0", "CUDA 11.8"},
                                                                       {"cupy_cuda102-9.0.0", "CUDA 10.2"},
                                                                       {"cupy_rocm_5_0-13.0.0", "ROCm 5.0"},
                                                                       {"cupy-13.3.0", "CUDA"}}};
    for (const auto& [name, purpose] : names) {
        const Environment environment;
        environment.distribution(name);
        EXPECT_EQ(environment.package().purpose(), purpose) << name;
    }
    const Environment environment;
    environment.distribution("cupy_xarray-0.1.4"); // depends on cupy, but is not cupy
    EXPECT_TRUE(environment.packages().empty());
    environment.distribution("cupy-13.3.0");
    environment.write("conda-meta/cuda-version-12.6-h7480c83_3.json", "{}");
    EXPECT_EQ(environment.package().purpose(), "CUDA 12.6");
    EXPECT_NE(environment.package().lacks, "");
    environment.write("lib/libcudart.so.12", "");
    EXPECT_EQ(environment.package().lacks, "");
}

TEST(Environments, WithoutSuchPackagesAndInOtherPlaces) {
    const Environment environment;
    environment.distribution("numpy-2.4.0");
    environment.write(std::string(site) + "broken.dist-info", "");
    EXPECT_TRUE(environment.packages().empty());
    const Tree root;
    root.write("opt/conda/lib/python3.11/site-packages/torch/version.py",
               "__version__ = '2.5.1'\ncuda = '12.4'\n");
    root.write("usr/lib/python3/dist-packages/x.py", "");
    const DirectoryView view(root.path());
    EXPECT_EQ(site_packages(view),
              (Texts{"/usr/lib/python3/dist-packages", "/opt/conda/lib/python3.11/site-packages"}));
    const auto found = accelerated_packages(view);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front().purpose(), "CUDA 12.4");
}

TEST(LayersView, ReadsAnImageAsItWouldADirectory) {
    const Environment environment;
    environment.torch("2.6.0+cu126", "12.6", "");
    environment.write(std::string(site) + "torch/lib/libtorch_python.so",
                      std::string(3U << 20U, 'x') + " sm_80 sm_90");
    environment.link("lib64", "lib");
    const test::TemporaryDirectory place;
    const std::array images = {place / "env.sqfs"};
    ASSERT_TRUE(image::write_tree(environment.path(), images[0], {}, 022));
    const auto layers = test::good(image::open_layers(images));
    const LayersView view(*layers);
    const DirectoryView directory(environment.path());
    EXPECT_EQ(view.list("/"), directory.list("/"));
    EXPECT_EQ(view.resolve("/lib64/python3.12"), "/lib/python3.12");
    const auto library = std::string("/lib64/python3.12/site-packages/torch/lib/libtorch_python.so");
    EXPECT_EQ(view.text(library, 64U << 20U), directory.text(library, 64U << 20U));
    EXPECT_EQ(view.read(library, 3U << 20U, 5), " sm_8");
    EXPECT_EQ(view.text("/lib"), "");
    EXPECT_FALSE(view.exists("/none"));
    const auto packages = accelerated_packages(view);
    ASSERT_EQ(packages.size(), 1U);
    EXPECT_EQ(to_json(packages.front()), to_json(environment.package()));
}

TEST(Drivers, OfToolkits) {
    EXPECT_EQ(driver_of_toolkit("12.6"), "560.28.03");
    EXPECT_EQ(driver_of_toolkit("12.6.1"), "");
    EXPECT_EQ(lowest_driver_for("11.8"), "450.80.02");
    EXPECT_EQ(lowest_driver_for("12"), "525.60.13");
    EXPECT_EQ(lowest_driver_for("10.2"), "440.33");
    EXPECT_EQ(lowest_driver_for("99.1"), "");
}

TEST(CudaOfDriver, IsThatOfItsBranch) {
    for (const auto& [driver, cuda] :
         {std::pair{"384.81", "9.0"}, std::pair{"418.226.00", "10.1"}, std::pair{"435.21", "10.1"},
          std::pair{"450.36.06", "11.0"}, std::pair{"535.54.03", "12.2"}, std::pair{"535.274.02", "12.2"},
          std::pair{"550.54.15", "12.4"}, std::pair{"565.57.01", "12.7"}, std::pair{"570.86.15", "12.8"},
          std::pair{"580.65.06", "13.0"}}) {
        EXPECT_EQ(cuda_of_driver(driver).version, cuda) << driver;
        EXPECT_FALSE(cuda_of_driver(driver).lower_bound) << driver;
    }
    EXPECT_EQ(cuda_of_driver("").version, "") << "no driver";
    EXPECT_EQ(cuda_of_driver("375.26").version, "") << "CUDA 8";
    EXPECT_FALSE(cuda_of_driver("").lower_bound);
    EXPECT_NE(cuda_of_driver("9990.1").version, "");
    EXPECT_TRUE(cuda_of_driver("9990.1").lower_bound);
}

AcceleratedPackage package_for(const Vendor* vendor, const std::string& toolkit, Texts architectures = {}) {
    return {.name = "torch",
            .version = "2.6.0",
            .built_for = vendor,
            .toolkit = toolkit,
            .lowest_driver = vendor == &Vendor::nvidia ? lowest_driver_for(toolkit) : "",
            .architectures = std::move(architectures),
            .evidence = {},
            .lacks = {}};
}

Host host_of(const HostTree& tree) {
    return discover(DirectoryView(tree.path()));
}

Host nvidia_host(const std::string& driver) {
    const HostTree tree;
    tree.nvidia_driver(driver);
    tree.nvidia_gpu(0, "NVIDIA H200");
    return host_of(tree);
}

TEST(Fits, CudaByTheDriver) {
    const auto torch = package_for(&Vendor::nvidia, "12.6");
    EXPECT_TRUE(compare(torch, nvidia_host("570.86.15")).fits);
    const auto older = compare(torch, nvidia_host("535.104.05"));
    EXPECT_TRUE(older.fits);
    EXPECT_TRUE(older.reason.contains("older than 560.28.03, the driver of that release")) << older.reason;
    const auto too_old = compare(torch, nvidia_host("470.82.01"));
    EXPECT_FALSE(too_old.fits);
    EXPECT_EQ(
        too_old.reason,
        "It was built for CUDA 12.6, which needs NVIDIA driver 525.60.13 or newer. This node has 470.82.01.");
}

TEST(Fits, OnlyTheVendorsOwn) {
    const HostTree amd, intel, none, bare;
    amd.mi250x();
    intel.pvc();
    bare.pci("0000:17:00.0", "10de", "2335", "030200", "", 0);
    const auto cuda = package_for(&Vendor::nvidia, "12.6");
    const auto rocm = package_for(&Vendor::amd, "6.2", {"gfx90a", "gfx942"});
    const auto xpu = package_for(&Vendor::intel, "");
    const auto cpu = package_for(nullptr, "");
    EXPECT_EQ(compare(cuda, host_of(amd)).reason, "It was built for CUDA 12.6, and this node has 2 x AMD "
                                                  "Instinct MI250X/MI250 (gfx90a), driver 6.10.5.");
    EXPECT_EQ(compare(cuda, host_of(none)).reason, "It was built for CUDA 12.6, and this node has no GPU.");
    EXPECT_TRUE(compare(cuda, host_of(bare)).reason.contains("driver is not loaded"));
    for (const auto& [package, tree, fits] : {std::tuple(&cuda, &amd, false),
                                              {&cuda, &none, false},
                                              {&cuda, &bare, false},
                                              {&rocm, &amd, true},
                                              {&rocm, &intel, false},
                                              {&xpu, &intel, true},
                                              {&xpu, &amd, false},
                                              {&cpu, &none, true},
                                              {&cpu, &amd, false}})
        EXPECT_EQ(compare(*package, host_of(*tree)).fits, fits) << package->purpose();
    const auto other = compare(package_for(&Vendor::amd, "6.2", {"gfx906", "gfx1100"}), host_of(amd));
    EXPECT_FALSE(other.fits);
    EXPECT_EQ(other.reason,
              "It has code for gfx906, gfx1100, and this node's AMD Instinct MI250X/MI250 is a gfx90a.");
}

TEST(BuildWarnings, ByWhatTheUserOrTheMachineSays) {
    const HostTree none;
    const auto cpu = package_for(nullptr, "");
    const auto cuda = package_for(&Vendor::nvidia, "12.6");
    const auto rocm = package_for(&Vendor::amd, "6.2");
    const auto nothing = host_of(none);
    EXPECT_EQ(build_warnings({cpu, cuda, rocm}, std::nullopt, nothing), Texts{}) << "a login node";
    const auto gpu_node = nvidia_host("570.86.15");
    EXPECT_EQ(build_warnings({cpu, cuda}, std::nullopt, gpu_node),
              Texts{"torch 2.6.0 in this environment does not fit this machine: It has no GPU support, and "
                    "this node has "
                    "1 x NVIDIA H200, driver 570.86.15."});
    const Target target{.vendor = Vendor::nvidia, .toolkit = "12.4"};
    EXPECT_EQ(
        build_warnings({cpu, cuda, rocm}, target, nothing),
        (Texts{"torch 2.6.0 in this environment has no GPU support, but the environment is for cuda 12.4.",
               "torch 2.6.0 in this environment was built for ROCm 6.2, but the environment is for cuda "
               "12.4."}));
    EXPECT_EQ(build_warnings({cuda}, Target{.vendor = Vendor::nvidia, .toolkit = "11.8"}, nothing),
              Texts{"torch 2.6.0 in this environment was built for CUDA 12.6, which is newer than CUDA 11.8 "
                    "of the target nodes."});
    auto incomplete = cuda;
    incomplete.lacks = "its libraries";
    EXPECT_EQ(build_warnings({incomplete}, std::nullopt, nothing),
              Texts{"torch 2.6.0 in this environment lacks its libraries."});
}

} // namespace
} // namespace containerize::gpu

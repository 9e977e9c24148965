#include "conda/virtual_packages.h"

#include "conda/version.h"
#include "core/text.h"
#include "gpu/accelerator.h"
#include "gpu/host.h"
#include "gpu/libraries.h"
#include "util/process.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>

#include <sys/utsname.h>
#include <unistd.h>

namespace containerize::conda {

namespace {

struct Platform {
    std::string_view subdir, machine; ///< in channels; by uname() and archspec
};
constexpr auto known_platforms = std::to_array<Platform>(
    {{"linux-64", "x86_64"}, {"linux-aarch64", "aarch64"}, {"linux-ppc64le", "ppc64le"}});

// Assumed for another platform: Red Hat Enterprise Linux 8, whose C library is also the oldest that current
// packages of conda-forge support.
constexpr const char* oldest_kernel = "4.18";
constexpr const char* oldest_glibc = "2.28";

std::string machine_name() {
    utsname name{};
    return uname(&name) == 0 ? name.machine : "unknown";
}

/// The name in archspec of a platform's oldest machines.
std::string machine_of(const std::string& subdir) {
    const auto* const known = std::ranges::find(known_platforms, subdir, &Platform::subdir);
    return known == known_platforms.end() ? std::string() : std::string(known->machine);
}

/// "6.18.44" for the release "6.18.44-fc-v669".
std::string kernel_version() {
    utsname name{};
    if (uname(&name) != 0) return "0";
    const std::string_view release = name.release;
    const auto end = std::min(release.find_first_not_of("0123456789."), release.size());
    std::string version(release.substr(0, end));
    while (version.ends_with('.'))
        version.pop_back();
    return version.empty() ? "0" : version;
}

std::string architecture() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return "x86_64_v4";
    if (__builtin_cpu_supports("x86-64-v3")) return "x86_64_v3";
    if (__builtin_cpu_supports("x86-64-v2")) return "x86_64_v2";
    return "x86_64";
#else
    return machine_name();
#endif
}

/// What nvidia-smi says; empty if it cannot. An alarm ends it if the driver hangs.
std::string cuda_of_nvidia_smi(const Environment& environment) {
    constexpr unsigned longest_seconds = 10;
    const auto asked =
        capture({.argv = {"nvidia-smi", "--version"}, .environment = environment, .in_child = [] {
                     alarm(longest_seconds);
                     return 0;
                 }});
    if (!asked || !asked->ok()) return {};
    for (const auto line : split(asked->output, '\n')) {
        // "CUDA Version        : 13.0"
        const auto colon = line.find(':');
        if (!line.starts_with("CUDA ") || colon == line.npos) continue;
        const auto version = trimmed(line.substr(colon + 1));
        if (!version.empty() && version.find_first_not_of("0123456789.") == version.npos)
            return std::string(version);
    }
    return {};
}

/// The newest CUDA version that this machine's driver supports; empty without a driver.
std::string cuda_version(const Environment& environment, const image::TreeView& machine) {
    const auto newest = gpu::cuda_of_driver(gpu::nvidia_driver(machine));
    if (!newest.lower_bound) return newest.version;
    const auto asked = cuda_of_nvidia_smi(environment);
    return asked.empty() ? newest.version : asked;
}

/// The user's override of a virtual package; nothing if there is none.
std::optional<std::string> override_of(const Environment& environment, const std::string& name) {
    const auto found = environment.find("CONDA_OVERRIDE_" + name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
}

} // namespace

std::string this_subdir() {
    const auto machine = machine_name();
    const auto* const known = std::ranges::find(known_platforms, machine, &Platform::machine);
    return known == known_platforms.end() ? "linux-" + machine : std::string(known->subdir);
}

std::vector<std::string> platforms() {
    std::vector<std::string> subdirs;
    for (const auto& platform : known_platforms)
        subdirs.emplace_back(platform.subdir);
    return subdirs;
}

Result<std::vector<VirtualPackage>> virtual_packages(const Environment& environment, const Target& target,
                                                     const image::TreeView& machine) {
    const bool here = target.subdir == this_subdir();
    const auto kernel = [&] { return here ? kernel_version() : oldest_kernel; };
    const auto glibc = [&] {
        return here ? gpu::glibc_version(target.root != nullptr ? *target.root : machine) : oldest_glibc;
    };
    const auto cuda = [&] { return here ? cuda_version(environment, machine) : std::string(); };
    // The compute capability of the GPUs is not detected, so it must be given (CEP 46).
    const auto cuda_architecture = [] { return std::string(); };
    std::vector<VirtualPackage> packages = {{.name = "__unix", .version = "0", .build = "0"}};
    using Detect = std::function<std::string()>;
    for (const auto& [name, variable, detect] :
         {std::tuple{"__linux", "LINUX", Detect(kernel)}, std::tuple{"__glibc", "GLIBC", Detect(glibc)},
          std::tuple{"__cuda", "CUDA", Detect(cuda)},
          std::tuple{"__cuda_arch", "CUDA_ARCH", Detect(cuda_architecture)}}) {
        const bool given = std::string_view(variable) == "CUDA" && !target.cuda.empty();
        const auto overridden = override_of(environment, variable);
        const std::string version = given ? target.cuda : overridden ? *overridden : detect();
        if (version.empty()) continue;
        const auto parsed = Version::parse(version);
        if (!parsed || std::isdigit(static_cast<unsigned char>(version.front())) == 0)
            return fail_input("invalid version: '" + version + "'",
                              parsed ? "it does not start with a digit" : parsed.error().why,
                              given ? "--cuda" : std::string("CONDA_OVERRIDE_") + variable,
                              "Give a version such as 12.4.");
        packages.push_back({.name = name, .version = version, .build = "0"});
    }
    const auto level =
        override_of(environment, "ARCHSPEC").value_or(here ? architecture() : machine_of(target.subdir));
    if (!level.empty()) packages.push_back({.name = "__archspec", .version = "1", .build = level});
    return packages;
}

} // namespace containerize::conda

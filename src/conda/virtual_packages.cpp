#include "conda/virtual_packages.h"

#include "conda/version.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include <dlfcn.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::conda {

namespace {

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

/// "2.36" for "glibc 2.36"; empty for other C libraries.
std::string glibc_version() {
#ifdef _CS_GNU_LIBC_VERSION
    std::array<char, 64> text{};
    if (confstr(_CS_GNU_LIBC_VERSION, text.data(), text.size()) > 0) {
        const std::string_view version = text.data();
        if (version.starts_with("glibc ")) return std::string(version.substr(6));
    }
#endif
    return {};
}

std::string architecture() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return "x86_64_v4";
    if (__builtin_cpu_supports("x86-64-v3")) return "x86_64_v3";
    if (__builtin_cpu_supports("x86-64-v2")) return "x86_64_v2";
    return "x86_64";
#else
    utsname name{};
    return uname(&name) == 0 ? name.machine : "unknown";
#endif
}

/// The CUDA version that the driver supports; empty without a driver. Runs in a child process, because a
/// driver's library may hang, crash or leave threads behind.
std::string cuda_version() {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return {};
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(10);
        int version = 0;
        if (void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
            using GetVersion = int (*)(int*);
            if (const auto get = reinterpret_cast<GetVersion>(dlsym(library, "cuDriverGetVersion")))
                if (get(&version) != 0) version = 0;
        }
        [[maybe_unused]] const auto written = write(ends[1], &version, sizeof version);
        _exit(0);
    }
    close(ends[1]);
    int version = 0;
    if (pid < 0 || read(ends[0], &version, sizeof version) != static_cast<ssize_t>(sizeof version))
        version = 0;
    close(ends[0]);
    if (pid > 0) waitpid(pid, nullptr, 0);
    if (version <= 0) return {};
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// The compute capability of the GPUs is not detected, so it must be given (CEP 46).
std::string cuda_architecture() {
    return {};
}

/// The user's override of a virtual package; nothing if there is none.
std::optional<std::string> override_of(const Environment& environment, const std::string& name) {
    const auto found = environment.find("CONDA_OVERRIDE_" + name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
}

} // namespace

Result<std::vector<VirtualPackage>> virtual_packages(const Environment& environment, const std::string& cuda,
                                                     const std::optional<std::string>& glibc) {
    std::vector<VirtualPackage> packages = {{.name = "__unix", .version = "0", .build = "0"}};
    for (const auto& [name, variable, of_machine] :
         {std::tuple{"__linux", "LINUX", &kernel_version}, std::tuple{"__glibc", "GLIBC", &glibc_version},
          std::tuple{"__cuda", "CUDA", &cuda_version},
          std::tuple{"__cuda_arch", "CUDA_ARCH", &cuda_architecture}}) {
        const bool given = std::string_view(variable) == "CUDA" && !cuda.empty();
        const auto overridden = override_of(environment, variable);
        const bool of_base = glibc && std::string_view(variable) == "GLIBC";
        const std::string version = given ? cuda : overridden ? *overridden : of_base ? *glibc : of_machine();
        if (version.empty()) continue;
        const auto parsed = Version::parse(version);
        if (!parsed || std::isdigit(static_cast<unsigned char>(version.front())) == 0)
            return fail_input("invalid version: '" + version + "'",
                              parsed ? "it does not start with a digit" : parsed.error().why,
                              given ? "--cuda" : std::string("CONDA_OVERRIDE_") + variable,
                              "Give a version such as 12.4.");
        packages.push_back({.name = name, .version = version, .build = "0"});
    }
    const auto level = override_of(environment, "ARCHSPEC").value_or(architecture());
    if (!level.empty()) packages.push_back({.name = "__archspec", .version = "1", .build = level});
    return packages;
}

std::string this_subdir() {
    utsname name{};
    const std::string machine = uname(&name) == 0 ? name.machine : "";
    return machine == "x86_64" ? "linux-64" : "linux-" + machine;
}

} // namespace containerize::conda

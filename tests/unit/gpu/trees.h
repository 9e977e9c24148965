// Hosts and images as directories, with the files that the kernel and drivers would show and libraries made
// by a compiler.
#pragma once

#include "../temporary.h"
#include "util/process.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace containerize::test {

inline void must_run(std::vector<std::string> argv) {
    const auto done = containerize::run({.argv = std::move(argv)});
    if (!done || !done->ok()) throw std::runtime_error(done ? done->output : to_string(done.error()));
}

/// One of the usual directories, on any machine: what a library is for, its file says.
constexpr const char* library_place = "usr/lib/x86_64-linux-gnu/";

class Tree : public TemporaryDirectory {
public:
    void link(const fs::path& name, const fs::path& target) const {
        fs::create_directories((path() / name).parent_path());
        fs::create_symlink(target, path() / name);
    }

    /// Makes a library that defines these versions, such as "GLIBC_2.36", with one symbol each.
    void make_versions(const std::string& file, const std::string& soname,
                       const std::vector<std::string>& versions) const {
        std::string code, map;
        for (const auto& version : versions) {
            code += "void " + symbol(version) + "(void) {}\n";
            map += version + " { " + symbol(version) + "; };\n";
        }
        const auto source = sources_.write(soname + ".c", code);
        const auto script = sources_.write(soname + ".map", map);
        fs::create_directories((path() / file).parent_path());
        must_run({CONTAINERIZE_TEST_COMPILER, "-shared", "-fPIC", "-nostdlib", "-Wl,-soname," + soname,
                  "-Wl,--version-script=" + script.string(), source.string(), "-o",
                  (path() / file).string()});
    }
    void make_libc(const std::vector<std::string>& versions) const {
        make_versions(std::string(library_place) + "libc.so.6", "libc.so.6", versions);
    }

    /// Makes a library that needs these versions of others, such as {"libc.so.6", "GLIBC_2.17"}, and other
    /// libraries of the tree.
    void make_library(const std::string& file, const std::string& soname,
                      const std::vector<std::pair<std::string, std::string>>& versions = {{"libc.so.6",
                                                                                           "GLIBC_2.17"}},
                      const std::vector<std::string>& needed = {}, bool is_program = false) const {
        std::string code;
        std::string calls;
        std::vector<std::string> argv = {CONTAINERIZE_TEST_COMPILER, "-fPIC", "-nostdlib",
                                         "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined"};
        argv.emplace_back(is_program ? "-pie" : "-shared");
        if (is_program) argv.emplace_back("-Wl,-e,entry");
        if (!soname.empty()) argv.push_back("-Wl,-soname," + soname);
        for (const auto& [library, version] : versions) {
            argv.push_back(make_stub(library, version).string());
            code += "void " + symbol(version) + "(void);\n";
            calls += symbol(version) + "(); ";
        }
        for (const auto& library : needed)
            argv.push_back((path() / library).string());
        code += "void entry(void) { " + calls + "}\n";
        argv.push_back(sources_.write("library.c", code).string());
        fs::create_directories((path() / file).parent_path());
        argv.insert(argv.end(), {"-o", (path() / file).string()});
        must_run(argv);
    }

    /// Makes /etc/ld.so.cache with the real ldconfig, which has to change its root for that. `format`: "new"
    /// or "compat".
    void make_cache(const std::string& format = "new") const {
        fs::create_directories(path() / "etc");
        write("etc/ld.so.conf", "/usr/lib/x86_64-linux-gnu\n/usr/lib64\n");
        must_run({"unshare", "-r", "/sbin/ldconfig", "-r", path().string(), "-c", format});
    }

private:
    static std::string symbol(std::string version) {
        for (auto& c : version)
            if (c == '.') c = '_';
        return "of_" + version;
    }
    /// Makes a library with this version to link against.
    [[nodiscard]] fs::path make_stub(const std::string& library, const std::string& version) const {
        const auto stub = sources_ / version / library;
        if (fs::exists(stub)) return stub;
        const auto source = sources_.write("stub.c", "void " + symbol(version) + "(void) {}\n");
        const auto script = sources_.write("stub.map", version + " { " + symbol(version) + "; };\n");
        fs::create_directories(stub.parent_path());
        must_run({CONTAINERIZE_TEST_COMPILER, "-shared", "-fPIC", "-nostdlib", "-Wl,-soname," + library,
                  "-Wl,--version-script=" + script.string(), source.string(), "-o", stub.string()});
        return stub;
    }

    TemporaryDirectory sources_;
};

/// A root filesystem in today's layout, with /lib a link to /usr/lib.
class Root : public Tree {
public:
    Root() {
        fs::create_directories(path() / library_place);
        fs::create_directory_symlink("usr/lib", path() / "lib");
    }
};

/// A node with devices on its PCI bus.
class HostTree : public Root {
public:
    void pci(const std::string& address, const std::string& vendor, const std::string& device,
             const std::string& pci_class, const std::string& driver, unsigned card) const {
        const auto real = "sys/devices/pci0000:00/" + address;
        write(real + "/vendor", "0x" + vendor + "\n");
        write(real + "/device", "0x" + device + "\n");
        write(real + "/class", "0x" + pci_class + "\n");
        if (!driver.empty()) link(real + "/driver", "../../../bus/pci/drivers/" + driver);
        const auto render = "renderD" + std::to_string(128 + card), primary = "card" + std::to_string(card);
        for (const auto& node : {render, primary}) {
            fs::create_directories(path() / real / "drm" / node);
            write("dev/dri/" + node, "");
        }
        write("dev/dri/by-path/pci-" + address + "-render", "");
        link("sys/bus/pci/devices/" + address, "../../../devices/pci0000:00/" + address);
    }

    void nvidia_gpu(unsigned minor, const std::string& model) const {
        const auto address = "0000:" + std::to_string(17 + minor) + ":00.0";
        pci(address, "10de", "2335", "030200", "nvidia", minor);
        write("proc/driver/nvidia/gpus/" + address + "/information",
              "Model: \t\t " + model + "\nIRQ:   \t\t 16\nGPU UUID: \t GPU-0000000" + std::to_string(minor) +
                  "-1111-2222-3333-444444444444\nVideo BIOS: \t 96.00\nBus Type: \t PCIe\nBus Location: \t " +
                  address + "\nDevice Minor: \t " + std::to_string(minor) + "\nGPU Excluded:\t No\n");
        write("dev/nvidia" + std::to_string(minor), "");
    }

    void nvidia_driver(const std::string& version) const {
        write("sys/module/nvidia/version", version + "\n");
        write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " +
                                                version +
                                                "  Release Build  (dvs-builder@U22)  Wed Jan  1 00:00:00 UTC "
                                                "2025\nGCC version:  gcc version 12\n");
        for (const char* node : {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"})
            write(fs::path("dev") / node, "");
    }

    /// A library of the driver, with ldconfig's links, as the driver's installer leaves it.
    void nvidia_library(const std::string& stem, const std::string& soname_version, const std::string& driver,
                        const std::string& glibc = "GLIBC_2.17") const {
        const auto file = stem + ".so." + driver, soname = stem + ".so." + soname_version;
        make_library(library_place + file, soname, {{"libc.so.6", glibc}});
        if (soname != file) link(library_place + soname, file);
    }

    /// Two instances on GPU 0, as made by `nvidia-smi mig`.
    void mig() const {
        std::string minors = "config 1\nmonitor 2\n";
        unsigned minor = 3;
        for (const char* instance : {"gi1", "gi2", "gi3"})
            for (const std::string right : {"/access", "/ci0/access", "/ci1/access"})
                minors += "gpu0/" + (instance + right) + " " + std::to_string(minor++) + "\n";
        write("proc/driver/nvidia-caps/mig-minors", minors);
        for (const char* instance : {"gi1", "gi2"}) {
            const auto place = std::string("proc/driver/nvidia/capabilities/gpu0/mig/") + instance;
            write(place + "/access", "DeviceFileMinor: 3\nDeviceFileMode: 292\n");
            write(place + "/ci0/access", "DeviceFileMinor: 4\nDeviceFileMode: 292\n");
        }
        for (unsigned node = 1; node < minor; ++node)
            write("dev/nvidia-caps/nvidia-cap" + std::to_string(node), "");
    }

    /// Both halves of one MI250X.
    void mi250x() const {
        write("sys/module/amdgpu/version", "6.10.5\n");
        write("dev/kfd", "");
        write("sys/class/kfd/kfd/topology/nodes/0/properties",
              "cpu_cores_count 64\nsimd_count 0\ngfx_target_version 0\n");
        for (unsigned card = 0; card < 2; ++card) {
            pci("0000:c" + std::to_string(1 + card) + ":00.0", "1002", "7408", "038000", "amdgpu", card);
            write("sys/class/kfd/kfd/topology/nodes/" + std::to_string(card + 1) + "/properties",
                  "cpu_cores_count 0\nsimd_count 440\ngfx_target_version 90010\nunique_id "
                  "17446744073709551615\n"
                  "drm_render_minor " +
                      std::to_string(128 + card) + "\n");
        }
        write("usr/share/hwdata/pci.ids",
              "# ids\n1002  Advanced Micro Devices, Inc. [AMD/ATI]\n\t7408  Aldebaran/MI200 "
              "[Instinct MI250X/MI250]\n\t\t1002 0b0c  Instinct MI250X\n");
    }

    /// A Data Center GPU Max, beside the graphics of the CPU.
    void pvc() const {
        fs::create_directories(path() / "sys/module/i915");
        pci("0000:29:00.0", "8086", "0bd5", "038000", "i915", 1);
        pci("0000:00:02.0", "8086", "a780", "030000", "i915", 0);
        write("usr/share/misc/pci.ids",
              "8086  Intel Corporation\n\t0bd5  Ponte Vecchio XT (2 Tile) [Data Center GPU Max 1550]\n");
    }
};

} // namespace containerize::test

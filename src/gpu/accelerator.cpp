#include "gpu/accelerator.h"

#include "core/text.h"
#include "gpu/driver_version.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace containerize::gpu {

namespace {

// From the release notes of the CUDA toolkit, table "toolkit and corresponding driver versions", by version.
// There is no toolkit 12.7, but a driver that supports it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 27> toolkit_drivers = {
    {{"9.0", "384.81"},     {"9.1", "390.46"},     {"9.2", "396.26"},     {"10.0", "410.48"},
     {"10.1", "418.39"},    {"10.2", "440.33"},    {"11.0", "450.36.06"}, {"11.1", "455.23"},
     {"11.2", "460.27.03"}, {"11.3", "465.19.01"}, {"11.4", "470.42.01"}, {"11.5", "495.29.05"},
     {"11.6", "510.39.01"}, {"11.7", "515.43.04"}, {"11.8", "520.61.05"}, {"12.0", "525.60.13"},
     {"12.1", "530.30.02"}, {"12.2", "535.54.03"}, {"12.3", "545.23.06"}, {"12.4", "550.54.14"},
     {"12.5", "555.42.02"}, {"12.6", "560.28.03"}, {"12.7", "565.57.01"}, {"12.8", "570.26"},
     {"12.9", "575.51.03"}, {"13.0", "580.65.06"}, {"13.1", "590.44.01"}}};
// Also from these notes: since CUDA 11, any toolkit works with the oldest driver of its major version.
constexpr std::array<std::pair<unsigned, std::string_view>, 3> lowest_drivers = {
    {{11, "450.80.02"}, {12, "525.60.13"}, {13, "580.65.06"}}};

struct Purpose {
    const Vendor* built_for = nullptr;
    std::string toolkit = {};
};

/// Normalises a name for comparison.
std::string normalised(std::string_view name) {
    auto result = lower(name);
    std::ranges::replace_if(
        result, [](char c) { return c == '_' || c == '.'; }, '-');
    return result;
}

/// "126" -> "12.6", "12" -> "12", "92" -> "9.2", "11.8" -> "11.8": package names omit the dot.
std::string with_dot(std::string_view digits) {
    std::string version(digits);
    while (version.ends_with('.'))
        version.pop_back();
    if (version.find('.') != std::string::npos || version.empty()) return version;
    const std::size_t major = version.front() == '1' ? 2 : 1;
    return version.size() > major ? version.substr(0, major) + "." + version.substr(major) : version;
}

/// The digits and dots after `word` in `text`; nothing if `text` does not contain the word.
std::optional<std::string> version_behind(std::string_view text, std::string_view word) {
    const auto at = text.find(word);
    if (at == std::string_view::npos) return std::nullopt;
    const auto rest = text.substr(at + word.size());
    return std::string(rest.substr(0, std::min(rest.find_first_not_of("0123456789."), rest.size())));
}

/// Interprets a tag in a version or build string: "cu126", "cuda118py311h0", "rocm6.2.4", "xpu", "cpu_py312".
Purpose purpose_of_tag(std::string_view tag) {
    for (const char* word : {"cuda", "cu"})
        if (const auto version = version_behind(tag, word); version && !version->empty())
            return {.built_for = &Vendor::nvidia, .toolkit = with_dot(*version)};
    if (const auto version = version_behind(tag, "rocm"))
        return {.built_for = &Vendor::amd, .toolkit = with_dot(*version)};
    if (tag.find("xpu") != std::string_view::npos) return {.built_for = &Vendor::intel};
    return {};
}

/// "6.2.41133-dd7f95766" -> "6.2".
std::string two_numbers(std::string_view version) {
    const auto dot = version.find('.');
    if (dot == std::string_view::npos) return std::string(version);
    const auto end = version.find_first_not_of("0123456789", dot + 1);
    return std::string(version.substr(0, end));
}

/// The values of lines like `cuda: Optional[str] = '12.6'`; empty for None.
std::map<std::string, std::string> assignments(const std::string& python) {
    std::map<std::string, std::string> values;
    std::istringstream lines(python);
    for (std::string line; std::getline(lines, line);) {
        const auto equals = line.find('=');
        const auto name_end = line.find_first_of(" :=");
        if (equals == std::string::npos || name_end == 0) continue;
        const auto open = line.find_first_of("'\"", equals);
        if (open == std::string::npos) {
            values.emplace(line.substr(0, name_end), "");
            continue;
        }
        const auto close = line.find(line[open], open + 1);
        if (close != std::string::npos)
            values.emplace(line.substr(0, name_end), line.substr(open + 1, close - open - 1));
    }
    return values;
}

/// The strings in the value after `key` in Python source: a single one, or those of a list.
std::vector<std::string> strings_behind(const std::string& python, const std::string& key) {
    auto at = python.find("'" + key + "'");
    if (at == std::string::npos) return {};
    at += key.size() + 2;
    const auto open = python.find_first_of("'[", at), end = python.find(')', at);
    if (open == std::string::npos || open > end) return {};
    const auto stop = python[open] == '[' ? python.find(']', open) : python.find('\'', open + 1) + 1;
    std::vector<std::string> found;
    for (auto quote = python.find('\'', open); quote < stop; quote = python.find('\'', quote)) {
        const auto close = python.find('\'', quote + 1);
        if (close == std::string::npos) break;
        found.push_back(python.substr(quote + 1, close - quote - 1));
        quote = close + 1;
    }
    return found;
}

/// "sm_90a compute_90" -> "sm_90a"; empty if the text does not start with an architecture.
std::string_view architecture_at(std::string_view text) {
    constexpr std::string_view start = "sm_";
    constexpr std::size_t longest = 7;
    if (!text.starts_with(start)) return {};
    const auto end = text.find_first_not_of("0123456789", start.size());
    if (end == start.size() || end == std::string_view::npos) return {};
    const auto name = text.substr(0, text[end] == 'a' || text[end] == 'f' ? end + 1 : end);
    return name.size() > longest ? std::string_view() : name;
}

/// The longest list such as "sm_80 sm_86 sm_90" in a library: torch stores the architectures it was compiled
/// for in this form.
std::vector<std::string> architecture_list(const TreeView& tree, const std::string& library) {
    constexpr std::size_t largest = 128U << 20U;
    const auto bytes = tree.text(library, largest);
    std::vector<std::string> longest;
    for (auto at = bytes.find("sm_"); at != std::string::npos; at = bytes.find("sm_", at + 1)) {
        std::vector<std::string> names;
        for (;;) {
            const auto name = architecture_at(std::string_view(bytes).substr(at));
            if (name.empty()) break;
            names.emplace_back(name);
            at += name.size();
            if (at >= bytes.size() || bytes[at] != ' ') break;
            ++at;
        }
        if (names.size() > longest.size()) longest = std::move(names);
    }
    return longest;
}

/// The targets in the names of rocBLAS's kernel files: "TensileLibrary_lazy_gfx90a.dat".
std::vector<std::string> gfx_targets(const TreeView& tree, const std::string& directory) {
    std::set<std::string> targets;
    for (const auto& name : tree.list(directory)) {
        const auto at = name.find("gfx");
        if (at == std::string::npos) continue;
        const auto end = name.find_first_not_of("0123456789abcdef", at + 3);
        targets.insert(name.substr(at, end - at));
    }
    return {targets.begin(), targets.end()};
}

/// A package assumed to be for CPUs only.
AcceleratedPackage bare_package(std::string name, std::string version, std::string evidence) {
    return {.name = std::move(name), .version = std::move(version), .evidence = std::move(evidence)};
}

constexpr const char* lacks_cuda =
    "the CUDA libraries: load a module that has them, or install them in the environment";

class Detector {
public:
    explicit Detector(const TreeView& tree) : tree_(tree), sites_(site_packages(tree)) {
        read_distributions();
        read_conda_records();
    }

    std::vector<AcceleratedPackage> detect() {
        for (const auto& site : sites_) {
            add_torch(site);
            add_tensorflow(site);
        }
        add_jax();
        add_cupy();
        for (auto& package : found_)
            if (package.built_for == &Vendor::nvidia)
                package.lowest_driver = lowest_driver_for(package.toolkit);
        return std::move(found_);
    }

private:
    struct Known {
        std::string version, file;
        std::string build = {}; ///< for conda's packages
    };
    using KnownByName = std::map<std::string, Known>;

    // Directories such as "nvidia_cuda_runtime_cu12-12.6.77.dist-info".
    void read_distributions() {
        for (const auto& site : sites_)
            for (const auto& entry : tree_.list(site)) {
                const auto dash = entry.find('-');
                const auto end = entry.rfind(".dist-info");
                if (dash == std::string::npos || end == std::string::npos || end < dash) continue;
                distributions_.emplace(
                    normalised(entry.substr(0, dash)),
                    Known{.version = entry.substr(dash + 1, end - dash - 1), .file = site + "/" + entry});
            }
    }

    // Files such as "jaxlib-0.4.34-cuda126py312h5a8b3c4_200.json".
    void read_conda_records() {
        for (const auto& entry : tree_.list("/conda-meta")) {
            if (!entry.ends_with(".json")) continue;
            const auto build = entry.rfind('-');
            const auto version =
                build == std::string::npos || build == 0 ? std::string::npos : entry.rfind('-', build - 1);
            if (version == std::string::npos) continue;
            records_.emplace(entry.substr(0, version),
                             Known{.version = entry.substr(version + 1, build - version - 1),
                                   .file = "/conda-meta/" + entry,
                                   .build = entry.substr(build + 1, entry.size() - build - 6)});
        }
    }

    static const Known* find(const KnownByName& packages, const std::string& name) {
        const auto found = packages.find(name);
        return found == packages.end() ? nullptr : &found->second;
    }
    [[nodiscard]] const Known* distribution(const std::string& name) const {
        return find(distributions_, name);
    }
    [[nodiscard]] const Known* record(const std::string& name) const { return find(records_, name); }
    /// The first distribution whose name starts with `start`.
    [[nodiscard]] const std::pair<const std::string, Known>* distribution_with(std::string_view start) const {
        const auto found = distributions_.lower_bound(std::string(start));
        return found != distributions_.end() && found->first.starts_with(start) ? &*found : nullptr;
    }

    /// Refines "12" to "12.6" by means of other packages in the environment.
    [[nodiscard]] std::string refined(const std::string& cuda) const {
        const Known* runtime = distribution("nvidia-cuda-runtime-cu" + cuda);
        if (runtime == nullptr) runtime = distribution("nvidia-cuda-runtime");
        if (runtime == nullptr) runtime = record("cuda-version");
        if (runtime == nullptr || std::to_string(major_version(runtime->version)) != cuda) return cuda;
        return two_numbers(runtime->version);
    }

    [[nodiscard]] bool has_cuda_libraries() const {
        if (distribution_with("nvidia-cuda-runtime") != nullptr) return true;
        const auto names = tree_.list("/lib");
        return std::ranges::any_of(names, [](const auto& name) { return name.starts_with("libcudart.so"); });
    }

    void add_torch(const std::string& site) {
        const auto file = site + "/torch/version.py";
        const auto values = assignments(tree_.text(file));
        const auto value = [&](const char* name) {
            const auto found = values.find(name);
            return found == values.end() ? std::string() : found->second;
        };
        auto torch = bare_package("torch", value("__version__"), file);
        if (torch.version.empty()) return;
        const auto plus = torch.version.find('+');
        const auto tagged = purpose_of_tag(plus == std::string::npos ? "" : torch.version.substr(plus + 1));
        const auto library = site + "/torch/lib/";
        if (!value("cuda").empty()) {
            torch.built_for = &Vendor::nvidia;
            torch.toolkit = two_numbers(value("cuda"));
            torch.architectures = architecture_list(tree_, library + "libtorch_python.so");
        } else if (!value("hip").empty() || !value("rocm").empty()) {
            torch.built_for = &Vendor::amd;
            torch.toolkit = tagged.built_for == &Vendor::amd
                                ? tagged.toolkit
                                : two_numbers(value("rocm").empty() ? value("hip") : value("rocm"));
            torch.architectures = gfx_targets(tree_, library + "rocblas/library");
        } else if (!value("xpu").empty() || tagged.built_for == &Vendor::intel ||
                   tree_.exists(library + "libtorch_xpu.so")) {
            torch.built_for = &Vendor::intel;
        } else if (const auto* extension = distribution("intel-extension-for-pytorch");
                   extension != nullptr && extension->version.find("xpu") != std::string::npos) {
            torch.built_for = &Vendor::intel;
            torch.evidence = extension->file;
        }
        found_.push_back(std::move(torch));
    }

    void add_tensorflow(const std::string& site) {
        const auto file = site + "/tensorflow/python/platform/build_info.py";
        const auto text = tree_.text(file);
        if (text.empty()) return;
        const auto first = [&](const char* key) {
            const auto strings = strings_behind(text, key);
            return strings.empty() ? std::string() : two_numbers(strings.front());
        };
        const auto is_true = [&](const std::string& key) {
            return text.find("'" + key + "', True") != std::string::npos;
        };
        auto tensorflow = bare_package("tensorflow",
                                       version_of({"tensorflow", "tensorflow-gpu", "tensorflow-cpu",
                                                   "tensorflow-rocm", "tensorflow-intel"}),
                                       file);
        if (is_true("is_rocm_build")) {
            tensorflow.built_for = &Vendor::amd;
            tensorflow.toolkit = first("rocm_version");
        } else if (is_true("is_cuda_build")) {
            tensorflow.built_for = &Vendor::nvidia;
            tensorflow.toolkit = first("cuda_version");
            tensorflow.architectures = strings_behind(text, "cuda_compute_capabilities");
            if (!has_cuda_libraries())
                tensorflow.lacks =
                    "the CUDA libraries, without which it uses the CPU: install tensorflow[and-cuda]";
        } else if (const auto* extension = distribution("intel-extension-for-tensorflow");
                   extension != nullptr && extension->version.find("cpu") == std::string::npos) {
            tensorflow.built_for = &Vendor::intel;
        }
        found_.push_back(std::move(tensorflow));
    }

    [[nodiscard]] std::string version_of(std::initializer_list<const char*> names) const {
        for (const char* name : names)
            if (const auto* known = distribution(name)) return known->version;
        return {};
    }

    // jaxlib alone is for CPUs; a plugin beside it makes it use an accelerator.
    void add_jax() {
        const Known* library = distribution("jaxlib");
        if (library == nullptr) return;
        auto jax = bare_package("jax", library->version, library->file);
        auto purpose =
            purpose_of_tag(std::string_view(library->version).substr(library->version.find('+') + 1));
        if (const Known* conda = record("jaxlib"); conda != nullptr && purpose.built_for == nullptr) {
            purpose = purpose_of_tag(conda->build);
            jax.evidence = conda->file;
        }
        for (const char* start : {"jax-cuda", "jax-rocm"})
            if (const auto* plugin = distribution_with(start)) {
                purpose = purpose_of_tag(plugin->first);
                jax.evidence = plugin->second.file;
            }
        if (const auto* plugin = distribution("intel-extension-for-openxla")) {
            purpose = {.built_for = &Vendor::intel};
            jax.evidence = plugin->file;
        }
        jax.built_for = purpose.built_for;
        jax.toolkit = purpose.built_for == &Vendor::nvidia ? refined(purpose.toolkit) : purpose.toolkit;
        if (purpose.built_for == &Vendor::nvidia && !has_cuda_libraries()) jax.lacks = lacks_cuda;
        found_.push_back(std::move(jax));
    }

    // The name tells what it is for: "cupy-cuda12x", "cupy-rocm-5-0". There is no version for CPUs.
    void add_cupy() {
        for (const auto& [name, known] : distributions_) {
            if (name != "cupy" && !name.starts_with("cupy-cuda") && !name.starts_with("cupy-rocm")) continue;
            auto cupy = bare_package("cupy", known.version, known.file);
            cupy.built_for = &Vendor::nvidia;
            auto tag = name;
            std::ranges::replace(tag, '-', '.');
            if (const auto rocm = version_behind(tag, "rocm.")) {
                cupy.built_for = &Vendor::amd;
                cupy.toolkit = two_numbers(*rocm);
            } else {
                cupy.toolkit = purpose_of_tag(name).toolkit;
                if (const Known* version = record("cuda-version"); cupy.toolkit.empty() && version != nullptr)
                    cupy.toolkit = version->version;
                cupy.toolkit = refined(cupy.toolkit);
                if (!has_cuda_libraries()) cupy.lacks = lacks_cuda;
            }
            found_.push_back(std::move(cupy));
            return;
        }
    }

    const TreeView& tree_;
    std::vector<std::string> sites_;
    KnownByName distributions_; ///< by normalised name
    KnownByName records_;       ///< of conda packages, by name
    std::vector<AcceleratedPackage> found_;
};

} // namespace

std::string AcceleratedPackage::purpose() const {
    if (built_for == nullptr) return "CPUs only";
    return std::string(built_for->platform_name) + (toolkit.empty() ? "" : " " + toolkit);
}

std::vector<std::string> site_packages(const TreeView& tree) {
    std::vector<std::string> found;
    std::set<std::string> seen; // lib64 is often a symlink to lib
    const auto add = [&](const std::string& directory) {
        const auto real = tree.resolve(directory);
        if (real && tree.kind(*real) == TreeView::Kind::directory && seen.insert(*real).second)
            found.push_back(*real);
    };
    // Environments, a Python bundled with one, and root filesystems of images.
    for (const std::string root : {"", "/python", "/usr", "/usr/local", "/opt/conda", "/opt/venv"})
        for (const char* library : {"/lib", "/lib64"})
            for (const auto& name : tree.list(root + library))
                if (name.starts_with("python3"))
                    for (const char* packages : {"/site-packages", "/dist-packages"})
                        add(root + library + "/" + name + packages);
    return found;
}

std::vector<AcceleratedPackage> accelerated_packages(const TreeView& tree) {
    return Detector(tree).detect();
}

std::string driver_of_toolkit(std::string_view cuda) {
    for (const auto& [toolkit, driver] : toolkit_drivers)
        if (toolkit == cuda) return std::string(driver);
    return {};
}

CudaOfDriver cuda_of_driver(std::string_view driver) {
    // All releases of a branch, such as 550, support the same CUDA.
    CudaOfDriver newest;
    for (const auto& [toolkit, of_toolkit] : toolkit_drivers)
        if (major_version(of_toolkit) <= major_version(driver))
            newest = {.version = std::string(toolkit), .lower_bound = false};
    newest.lower_bound = major_version(driver) > major_version(toolkit_drivers.back().second);
    return newest;
}

std::string lowest_driver_for(std::string_view cuda) {
    for (const auto& [major, driver] : lowest_drivers)
        if (major == major_version(cuda)) return std::string(driver);
    return driver_of_toolkit(cuda);
}

nlohmann::json to_json(const AcceleratedPackage& package) {
    nlohmann::json json = {{"package", package.name},
                           {"version", package.version},
                           {"built_for", package.built_for == nullptr ? "cpu" : package.built_for->platform}};
    const auto add = [&](const char* key, const std::string& value) {
        if (!value.empty()) json[key] = value;
    };
    add("toolkit", package.toolkit);
    add("lowest_driver", package.lowest_driver);
    add("lacks", package.lacks);
    add("evidence", package.evidence);
    if (!package.architectures.empty()) json["architectures"] = package.architectures;
    return json;
}

} // namespace containerize::gpu

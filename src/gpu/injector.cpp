#include "gpu/injector.h"

#include "gpu/driver_version.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace containerize::gpu {

namespace {

using launch::EnvironmentChange;

/// The newest version with this prefix: "GLIBC_2.38" in {"GLIBC_2.2.5", "GLIBC_2.38", "GLIBC_PRIVATE"}.
std::string newest(const std::set<std::string>& versions, std::string_view prefix) {
    std::string found;
    for (const auto& version : versions)
        if (version.starts_with(prefix) &&
            (found.empty() ||
             compare_versions(version.substr(prefix.size()), found.substr(prefix.size())) > 0))
            found = version;
    return found;
}

std::vector<std::string> vendors_directories(const TreeView& host) {
    std::vector<std::string> directories;
    for (const auto* vendor : vendors)
        if (vendor->library_directories != nullptr)
            std::ranges::move(vendor->library_directories(host), std::back_inserter(directories));
    return directories;
}

/// "GLIBC_2.38" -> "GLIBC_".
std::string_view family(std::string_view version) {
    return version.substr(0, version.find('_') + 1);
}

} // namespace

Injector::Injector(const Request& request)
    : request_(request), host_(request.host_root), libraries_(host_, vendors_directories(host_)),
      image_libraries_(request.image) {
    if (const auto libc = image_libraries_.find("libc.so.6", 0))
        if (const auto elf = elf::read_elf(request.image, *libc)) machine_ = elf->machine;
    if (machine_ == 0)
        note("The image has no GNU C library (libc.so.6), so the host's libraries cannot be used in it.");
}

std::optional<std::string> Injector::variable(const std::string& name) const {
    const auto found = request_.variables.find(name);
    if (found == request_.variables.end()) return std::nullopt;
    return found->second;
}

bool Injector::image_has(const std::string& name) const {
    return image_libraries_.find(name, machine_).has_value();
}

const std::optional<std::set<std::string>>& Injector::image_versions(const std::string& library) {
    const auto known = image_versions_.find(library);
    if (known != image_versions_.end()) return known->second;
    std::optional<std::set<std::string>> versions;
    const auto add = [&](const TreeView& tree, const std::string& path) {
        const auto elf = elf::read_elf(tree, path);
        if (!elf || elf->machine != machine_) return;
        if (!versions) versions.emplace();
        versions->insert(elf->defined_versions.begin(), elf->defined_versions.end());
    };
    if (const auto path = image_libraries_.find(library, machine_)) add(request_.image, *path);
    // conda environments bring the compiler's runtime libraries, which their programs load.
    if (request_.environment != nullptr) add(*request_.environment, "/lib/" + library);
    return image_versions_.emplace(library, std::move(versions)).first->second;
}

std::string Injector::incompatibility(const elf::Elf& elf) {
    if (elf.machine != machine_) return "it is for another processor architecture than the image";
    for (const auto& [library, version] : elf.needed_versions) {
        if (!is_system_library(library)) continue;
        const auto& has = image_versions(library);
        // Programs name the dynamic linker by path, so it need not be in the search path.
        if (!has && library.starts_with("ld-linux")) continue;
        if (!has) return "it needs " + library + ", which the image does not have";
        if (has->contains(version)) continue;
        const auto best = newest(*has, family(version));
        return "it needs " + version + " of " + library +
               (best.empty() ? "" : ", and the image has versions up to " + best);
    }
    return {};
}

void Injector::bind(const std::string& real_path, std::string target, bool read_only) {
    if (!targets_.insert(target).second) return;
    auto source = request_.host_root.string();
    while (source.ends_with('/'))
        source.pop_back();
    injection_.binds.push_back({.source = source + real_path,
                                .target = std::move(target),
                                .read_only = read_only,
                                .required = false});
}

bool Injector::is_for_image(const std::string& path) const {
    const auto elf = elf::read_elf(host_, path);
    return elf && elf->machine == machine_;
}

bool Injector::can_load(const std::string& path) {
    if (machine_ == 0) return false; // noted in the constructor
    const auto elf = elf::read_elf(host_, path);
    const auto problem = elf ? incompatibility(*elf) : elf.error().why;
    if (!problem.empty()) note("Not used: " + path + ": " + problem + ".");
    return problem.empty();
}

bool Injector::add_library(const std::string& path) {
    const auto real = host_.resolve(path);
    if (!real || is_system_library(name_of(path)) || is_system_library(name_of(*real))) return false;
    if (!can_load(*real)) return false;
    const auto file = name_of(*real);
    bind(*real, std::string(library_directory) + "/" + std::string(file), true);
    has_libraries_ = true;
    const auto elf = elf::read_elf(host_, *real);
    if (elf && !is_system_library(elf->soname)) add_link(elf->soname, file);
    add_link(name_of(path), file);
    return true;
}

void Injector::add_link(std::string_view name, std::string_view target) {
    if (name.empty() || name == target || name.find('/') != std::string_view::npos) return;
    links_.emplace(name, target);
}

void Injector::add_with_needed(const std::vector<std::string>& names) {
    std::vector<std::string> wanted = names;
    std::set<std::string> seen;
    while (!wanted.empty()) {
        const auto name = std::move(wanted.back());
        wanted.pop_back();
        if (is_system_library(name) || !seen.insert(name).second || image_has(name)) continue;
        const auto path = libraries_.find(name, machine_);
        if (!path || !add_library(*path)) continue;
        const auto elf = elf::read_elf(host_, *path);
        if (elf) wanted.insert(wanted.end(), elf->needed.begin(), elf->needed.end());
    }
}

void Injector::add_program(const std::string& path) {
    const auto real = host_.resolve(path);
    if (!real || !can_load(*real)) return;
    bind(*real, std::string(program_directory) + "/" + std::string(name_of(path)), true);
    has_programs_ = true;
}

void Injector::add_file(const std::string& path, const std::string& target) {
    const auto real = host_.resolve(path);
    const auto& place = target.empty() ? path : target;
    if (!real || request_.image.kind(place) == TreeView::Kind::file) return;
    // A socket must be writable.
    bind(*real, place, host_.kind(*real) == TreeView::Kind::file);
}

void Injector::add_node(const std::string& path) {
    if (!request_.has_devices && host_.exists(path)) bind(path, path, false);
}

Injection Injector::finish() {
    for (const auto& [name, target] : links_) {
        auto path = std::string(library_directory) + "/" + name;
        if (!targets_.contains(path)) injection_.links.push_back({.path = std::move(path), .target = target});
    }
    // Appended, so that the image's own directories are searched first.
    const auto append = [&](const char* name, std::string_view directory) {
        change({.kind = EnvironmentChange::Kind::append, .name = name, .value = std::string(directory)});
    };
    if (has_libraries_) append("LD_LIBRARY_PATH", library_directory);
    if (has_programs_) append("PATH", program_directory);
    return std::move(injection_);
}

} // namespace containerize::gpu

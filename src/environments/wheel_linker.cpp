#include "environments/wheel_linker.h"

#include "core/filesystem.h"
#include "core/printable.h"
#include "environments/byte_code_image.h"
#include "util/log.h"
#include "wheel/installation.h"
#include "wheel/names.h"
#include "wheel/scripts.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <sys/stat.h>

namespace containerize::environments {

namespace {

constexpr std::uint64_t largest_script = 16U << 20U;
constexpr std::uint64_t largest_dist_info = 64U << 20U;
constexpr wheel::Scheme schemes[] = {wheel::Scheme::site_packages, wheel::Scheme::scripts,
                                     wheel::Scheme::data, wheel::Scheme::headers};

std::unexpected<Error> damaged(const image::Reader& reader, std::string why) {
    return fail({.what = "the package image cannot be used",
                 .why = std::move(why),
                 .where = reader.name(),
                 .hint = "Remove it with `containerize cache clean`, and try again."});
}

std::unexpected<Error> not_together(const std::string& path, const std::string& package) {
    return fail({.what = "two packages cannot be installed together",
                 .why = "'" + path + "' is a file in " + package + ", and a directory in another package"});
}

std::optional<wheel::Place> place_of(const std::string& path) {
    for (const auto scheme : schemes)
        if (const auto start = std::string(wheel::directory_of(scheme)) + "/"; path.starts_with(start))
            return wheel::Place{.scheme = scheme, .path = path.substr(start.size())};
    return std::nullopt;
}

/// The content of a script for which the installer chooses the interpreter.
Result<std::optional<std::string>> script_in(image::Reader& reader, const image::ListedEntry& entry) {
    std::vector<image::Slice> start;
    constexpr std::size_t enough = 32; // "#!pythonw"
    if (const auto read = reader.read(entry.reference, 0, enough, start); !read)
        return damaged(reader, "'" + entry.path + "' cannot be read");
    std::string text;
    for (const auto& slice : start)
        text.append(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
    if (!wheel::wants_interpreter(text)) return std::nullopt;
    return TRY(image::content_of(reader, entry, largest_script));
}

} // namespace

/// What is in a wheel's image.
struct WheelLinker::Contents {
    struct File {
        image::ListedEntry entry;
        wheel::Place place;
    };
    std::vector<File> files;
    wheel::DistInfo info;
    std::vector<wheel::PackagedFile> described; ///< the same files
    std::uint32_t newest = 0;

    static Result<Contents> read(image::Reader& reader);
    [[nodiscard]] Status read_dist_info(image::Reader& reader);
};

Result<WheelLinker::Contents> WheelLinker::Contents::read(image::Reader& reader) {
    Contents contents;
    for (auto& entry : TRY(image::list_entries(reader))) {
        if (S_ISDIR(entry.inode.mode)) continue;
        auto place = place_of(entry.path);
        if (!place || !S_ISREG(entry.inode.mode))
            return damaged(reader, "a wheel has no '" + entry.path + "'");
        wheel::PackagedFile file{.place = *place, .executable = (entry.inode.mode & S_IXUSR) != 0};
        if (place->scheme == wheel::Scheme::scripts) file.script = TRY(script_in(reader, entry));
        contents.newest = std::max(contents.newest, entry.inode.mtime);
        contents.described.push_back(std::move(file));
        contents.files.push_back({.entry = std::move(entry), .place = std::move(*place)});
    }
    TRY(contents.read_dist_info(reader));
    return contents;
}

Status WheelLinker::Contents::read_dist_info(image::Reader& reader) {
    constexpr std::string_view ending = ".dist-info";
    const std::pair<std::string_view, std::string wheel::DistInfo::*> wanted[] = {
        {"METADATA", &wheel::DistInfo::metadata},
        {"WHEEL", &wheel::DistInfo::wheel},
        {"RECORD", &wheel::DistInfo::record},
        {"entry_points.txt", &wheel::DistInfo::entry_points}};
    for (const auto& [entry, place] : files) {
        const auto slash = place.path.find('/');
        if (place.scheme != wheel::Scheme::site_packages || slash == std::string::npos) continue;
        const auto directory = place.path.substr(0, slash);
        if (!directory.ends_with(ending)) continue;
        for (const auto& [name, member] : wanted) {
            if (place.path.substr(slash + 1) != name) continue;
            info.directory = directory;
            info.*member = TRY(image::content_of(reader, entry, largest_dist_info));
        }
    }
    return info.directory.empty() ? Status(damaged(reader, "it has no .dist-info")) : Status();
}

/// In a venv, "lib64" is a link to "lib".
std::string WheelLinker::path_of(const wheel::Layout& layout, const wheel::Place& place) const {
    auto path = wheel::path_in_prefix(layout, place);
    if (path.starts_with("lib64/") && writer_.contains("lib64") && writer_.directory("lib64") == nullptr)
        path.erase(3, 2);
    return path;
}

Status WheelLinker::make_way(const std::string& path, const std::string& package) {
    const auto [owner, is_new] = owners_.emplace(path, package);
    if (is_new && writer_.contains(path) && writer_.directory(path) == nullptr)
        return fail({.what = "the package " + package + " cannot be installed",
                     .why = "it would replace '" + path + "' of the environment",
                     .hint = "Request another version of the package, or try --installer pip-tree."});
    if (!is_new && owner->second != package)
        log::detail("'" + path + "' is in " + owner->second + " and in " + package + ", which is used");
    owner->second = package;
    if (writer_.directory(path) != nullptr) return not_together(path, package);
    for (auto parent = fs::path(path).parent_path(); !parent.empty(); parent = parent.parent_path())
        if (const auto file = owners_.find(parent); file != owners_.end())
            return not_together(file->first, file->second);
    writer_.remove(path);
    if (path.ends_with(".py")) {
        // What was made of another package's module.
        const auto byte_code = path_of_byte_code(path, prefix_.cache_tag);
        if (owners_.erase(byte_code) != 0) writer_.remove(byte_code);
        without_byte_code_.erase(path);
    }
    return {};
}

Status WheelLinker::link(image::Reader& from, const std::vector<WheelPlan::File>& files,
                         const std::string& package) {
    std::vector<image::StoredFile> stored;
    for (const auto& [path, entry] : files) {
        auto file = from.stored_file(entry.reference);
        if (!file) return damaged(from, "'" + entry.path + "' is damaged");
        stored.push_back(std::move(*file));
    }
    image::CopiedBlocks blocks;
    TRY(writer_.copy_blocks(from, stored, blocks));
    for (std::size_t i = 0; i < files.size(); ++i) {
        const auto& [path, entry] = files[i];
        TRY(make_way(path, package));
        ++files_;
        bytes_ += stored[i].size;
        TRY(writer_.link_file(
            path,
            {.mode = image::mode_for_sharing(entry.inode.mode, umask_bits_), .mtime = entry.inode.mtime},
            stored[i], blocks));
    }
    return {};
}

Status WheelLinker::write(const std::string& path, const std::string& content, bool executable,
                          std::uint32_t mtime) {
    ++files_;
    bytes_ += content.size();
    const mode_t mode = S_IFREG | (executable ? 0755U : 0644U);
    TRY(writer_.begin_file(path, {.mode = image::mode_for_sharing(mode, umask_bits_), .mtime = mtime}));
    TRY(writer_.append(std::as_bytes(std::span(content))));
    return writer_.end_file();
}

bool WheelLinker::has(const std::string& package) const {
    const auto name = wheel::normalised_name(package);
    return std::ranges::any_of(owners_,
                               [&](const auto& file) { return wheel::normalised_name(file.second) == name; });
}

void WheelLinker::remove(const std::string& package) {
    const auto name = wheel::normalised_name(package);
    std::vector<std::string> removed;
    for (const auto& [path, owner] : owners_)
        if (wheel::normalised_name(owner) == name) removed.push_back(path);
    for (const auto& path : removed) {
        writer_.remove(path);
        owners_.erase(path);
        without_byte_code_.erase(path);
    }
    for (const auto& path : removed)
        remove_empty_parents(path);
}

/// Only of packages: nothing else of the environment is below these directories.
void WheelLinker::remove_empty_parents(const std::string& path) {
    const auto site_packages = fs::path("lib") / prefix_.library_name / "site-packages";
    for (auto parent = fs::path(path).parent_path();
         parent.string().starts_with(site_packages.string() + "/"); parent = parent.parent_path()) {
        const auto next = owners_.lower_bound(parent.string() + "/");
        if (next != owners_.end() && next->first.starts_with(parent.string() + "/")) break;
        writer_.remove(parent.string());
    }
}

Result<WheelPlan> WheelLinker::plan(const pip::ResolvedPackage& package, PackedWheel& wheel) const {
    auto contents = TRY(Contents::read(*wheel.files));
    if (const auto name = wheel::parse_metadata(contents.info.metadata).name;
        wheel::normalised_name(name) != wheel::normalised_name(package.name))
        return damaged(*wheel.files, "it is of " + printable(name) + ", not of " + package.name);
    const auto layout = prefix_.layout(
        std::string_view(prefix_.library_name).substr(std::string_view("python").size()), package.name);
    wheel::InstallRequest request{.layout = layout,
                                  .interpreter = prefix_.interpreter,
                                  .python = prefix_.python,
                                  .requested = package.requested};
    if (!package.direct_url.empty()) request.direct_url = package.direct_url;
    auto installation = TRY(wheel::plan_installation(contents.info, contents.described, request));
    WheelPlan plan{.package = package.name,
                   .files = {},
                   .byte_code = {},
                   .generated = std::move(installation.generated),
                   .newest = contents.newest};
    for (auto& [entry, place] : contents.files)
        if (!installation.replaced.contains(place))
            plan.files.push_back({.path = path_of(layout, place), .entry = std::move(entry)});
    if (!wheel.byte_code) return plan;
    for (auto& entry : TRY(image::list_entries(*wheel.byte_code)))
        if (const auto place = place_of(entry.path); place && S_ISREG(entry.inode.mode))
            plan.byte_code.push_back({.path = path_of(layout, *place), .entry = std::move(entry)});
    return plan;
}

std::string WheelLinker::obstacle_to(const WheelPlan& plan, const std::set<std::string>& taken) const {
    std::vector<std::string> paths;
    for (const auto* files : {&plan.files, &plan.byte_code})
        for (const auto& file : *files)
            paths.push_back(file.path);
    for (const auto& file : plan.generated)
        paths.push_back(file.path);
    std::set<std::string> above;
    for (const auto& path : paths) {
        if (taken.contains(path) || writer_.contains(path)) return "'" + path + "' is there already";
        for (auto parent = fs::path(path).parent_path().string();
             !parent.empty() && above.insert(parent).second; parent = fs::path(parent).parent_path().string())
            if (taken.contains(parent) || (writer_.contains(parent) && writer_.directory(parent) == nullptr))
                return "'" + parent + "' is there already";
    }
    return {};
}

Status WheelLinker::add(const WheelPlan& plan, PackedWheel& wheel) {
    TRY(link(*wheel.files, plan.files, plan.package));
    for (const auto& file : plan.generated) {
        TRY(make_way(file.path, plan.package));
        TRY(write(file.path, file.content, file.executable, plan.newest));
    }
    if (wheel.byte_code) TRY(link(*wheel.byte_code, plan.byte_code, plan.package));
    // The image of byte-code is made from modules in site-packages/ only.
    const auto packed = std::string(wheel::directory_of(wheel::Scheme::site_packages)) + "/";
    const auto library = "lib/" + prefix_.library_name + "/";
    for (const auto& [path, entry] : plan.files)
        if (path.ends_with(".py") && path.starts_with(library) &&
            !(wheel.byte_code && entry.path.starts_with(packed)))
            without_byte_code_.insert(path);
    return {};
}

} // namespace containerize::environments

#include "manifest/manifest.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/open_file.h"
#include "core/ownership.h"
#include "core/printable.h"
#include "core/text.h"
#include "core/variables.h"
#include "core/version.h"
#include "util/json.h"

#include <algorithm>
#include <tuple>

#include <fcntl.h>
#include <sys/stat.h>

namespace containerize::manifest {

namespace {

using nlohmann::json;

json to_json(const ImageFile& image) {
    return {{"file", image.file}, {"size", image.size}, {"sha256", image.sha256}};
}

ImageFile image_from(const json& entry) {
    return {.file = entry.at("file").get<std::string>(),
            .size = to_integer<std::uint64_t>(entry.at("size")),
            .sha256 = entry.at("sha256").get<std::string>()};
}

/// Checks the types of entries that programs read; the rest is for people.
json build_from(const json& entry) {
    if (entry.is_null()) return json::object();
    if (entry.contains("files")) std::ignore = to_integer<std::uint64_t>(entry.at("files"));
    for (const char* name : {"command", "layout"})
        std::ignore = entry.value(name, std::string());
    const auto python = entry.value("python", json::object());
    for (const char* name : {"version", "executable"})
        std::ignore = python.value(name, std::string());
    std::ignore = python.value("bundled", false);
    return entry;
}

std::unexpected<Error> bad_manifest(const std::filesystem::path& file, std::string why) {
    return fail({.what = "this version cannot read the manifest",
                 .why = std::move(why),
                 .where = file.string(),
                 .hint = "Build the installation again with `containerize new --force`.",
                 .fault = Fault::input});
}

/// An empty version is unknown.
std::unexpected<Error> made_by_newer(std::string what, const std::string& version, const fs::path& where) {
    return fail_input(
        std::move(what),
        "it was made or upgraded by " + (version.empty() ? "a newer version" : "containerize " + version) +
            ", and this is version " + this_version,
        where.string(),
        version.empty() ? "Use the newest version." : "Use containerize " + version + " or newer.");
}

std::string move(const fs::path& from, const fs::path& to) {
    return "mv " + shell_quoted(from.string()) + " " + shell_quoted(to.string());
}

} // namespace

Result<Manifest> parse_manifest(std::string_view text, const std::filesystem::path& file) {
    // The json library throws on wrong types.
    try {
        const json root = parse_json(text);
        const int format = to_integer<int>(root.at("format"));
        if (format > manifest_format)
            return made_by_newer("only a newer containerize can use this installation",
                                 printable_line(root.value("programs_version", "")), file);
        if (format != manifest_format)
            return bad_manifest(file, "it has format " + std::to_string(format) +
                                          ", and this version reads format " +
                                          std::to_string(manifest_format));
        Manifest manifest;
        manifest.tool_version = root.at("tool_version").get<std::string>();
        // Before version 0.2.0, programs came with a state only.
        manifest.programs_version = root.value("programs_version", manifest.tool_version);
        manifest.prefix = root.at("prefix").get<std::string>();
        manifest.created = root.at("created").get<std::string>();
        manifest.settings = settings_from(root);
        manifest.image = image_from(root.at("image"));
        for (const auto& layer : root.at("layers"))
            manifest.layers.push_back(image_from(layer));
        manifest.state = to_integer<unsigned>(root.at("state"));
        manifest.parent = to_integer<unsigned>(root.at("parent"));
        manifest.mask = root.value("mask", "");
        manifest.wrapper_paths = root.at("wrapper_paths").get<std::vector<std::string>>();
        manifest.activation = changes_from(root.at("activation"));
        manifest.activation_scripts = root.at("activation_scripts").get<std::vector<std::string>>();
        manifest.environment = changes_from(root.at("environment"));
        manifest.build = build_from(root.at("build"));
        for (const auto& script : manifest.activation_scripts)
            if (!stays_below(script))
                return bad_manifest(file, "an activation script is not below the prefix");
        if (!std::ranges::all_of(manifest.wrapper_paths, stays_below))
            return bad_manifest(file, "a wrapper path is not below the prefix");
        if (!manifest.prefix.is_absolute()) return bad_manifest(file, "the prefix is not an absolute path");
        if (!manifest.mask.empty() && !manifest.mask.is_absolute())
            return bad_manifest(file, "the masked directory is not an absolute path");
        for (const auto& image : manifest.images())
            if (!stays_below(image.file)) return bad_manifest(file, "an image is not below the prefix");
        return manifest;
    } catch (const json::exception& problem) {
        return bad_manifest(file, reason(problem, text));
    }
}

std::vector<ImageFile> Manifest::images() const {
    std::vector<ImageFile> all = layers;
    all.insert(all.begin(), image);
    return all;
}

std::string to_text(const Manifest& manifest) {
    json layers = json::array();
    for (const auto& layer : manifest.layers)
        layers.push_back(to_json(layer));
    json root = {
        {"format", manifest_format},
        {"tool_version", manifest.tool_version},
        {"programs_version", manifest.programs_version},
        {"prefix", manifest.prefix.string()},
        {"created", manifest.created},
        {"image", to_json(manifest.image)},
        {"layers", layers},
        {"state", manifest.state},
        {"parent", manifest.parent},
        {"mask", manifest.mask.string()},
        {"wrapper_paths", manifest.wrapper_paths},
        {"activation", to_json(manifest.activation)},
        {"activation_scripts", manifest.activation_scripts},
        {"environment", to_json(manifest.environment)},
        {"build", manifest.build},
    };
    root.update(to_json(manifest.settings));
    return root.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<Manifest> read_manifest(const std::filesystem::path& directory) {
    const auto file = directory / launch::manifest_name;
    auto text = TRY(read_file(file));
    return parse_manifest(text, file);
}

Status check_not_newer(const Manifest& manifest, const fs::path& directory) {
    if (!is_newer(manifest.programs_version, this_version)) return {};
    return made_by_newer("only a newer containerize can change this installation",
                         printable_line(manifest.programs_version), directory);
}

Result<std::vector<image::Layers::ImageFile>> open_images(const Manifest& manifest,
                                                          const std::filesystem::path& directory) {
    std::vector<image::Layers::ImageFile> opened;
    for (const auto& image : manifest.images()) {
        const auto path = directory / image.file;
        auto file = TRY(open_regular(path, O_NOFOLLOW));
        struct stat info {};
        if (fstat(file.get(), &info) != 0) return fail_errno("cannot open the image", path.string());
        if (static_cast<std::uint64_t>(info.st_size) != image.size)
            return fail(
                {.what = "the image is not the one that was built",
                 .why = "it has " + std::to_string(info.st_size) + " bytes, and the manifest says " +
                        std::to_string(image.size),
                 .where = path.string(),
                 .hint = "Copy the installation again, or build it again with `containerize new --force`."});
        TRY(image::Reader::check(file.get(), path));
        opened.push_back({.file = std::move(file), .path = path, .offset = 0});
    }
    return opened;
}

Result<std::unique_ptr<image::Layers>> open_layers(const Manifest& manifest, const fs::path& prefix) {
    auto images = TRY(open_images(manifest, prefix));
    return image::Layers::open(std::move(images));
}

launch::LaunchPlan plan_of(const Manifest& manifest, const std::string& prefix, std::string identity) {
    launch::LaunchPlan plan{.identity = std::move(identity),
                            .prefix = prefix,
                            .activation = launch::with_prefix(manifest.activation, prefix),
                            .environment = launch::with_prefix(manifest.environment, prefix)};
    for (const auto& script : manifest.activation_scripts)
        plan.scripts.push_back(prefix + "/" + script);
    return plan;
}

std::string command_to_move_back(const Manifest& manifest, const fs::path& prefix) {
    const fs::path& first = manifest.prefix;
    const auto removal = "rmdir " + shell_quoted(first.string()) + " && ";
    std::error_code failed;
    if (!fs::exists(first, failed)) return failed ? "" : move(prefix, first);
    if (fs::is_empty(first, failed)) return removal + move(prefix, first);
    // `mv` has moved it into the empty directory.
    if (prefix.parent_path() != first || names_in(first) != std::set{prefix.filename().string()}) return {};
    const fs::path aside = first.string() + ".moved";
    return move(prefix, aside) + " && " + removal + move(aside, first);
}

Status check_first_path(const Manifest& manifest, const std::string& prefix) {
    std::error_code failed;
    const auto& path = manifest.prefix;
    if (!std::filesystem::exists(path, failed) || std::filesystem::is_empty(path, failed)) return {};
    const auto back = command_to_move_back(manifest, prefix);
    return fail({.what = "this installation was moved, and something else is now at its original path",
                 .why = "its programs refer to " + path.string(),
                 .where = prefix,
                 .hint = back.empty() ? "Build it again at " + prefix + ", or move away what is now at " +
                                            path.string() + "."
                                      : "Move it back: `" + back + "`."});
}

bool is_installation(const std::filesystem::path& directory) {
    struct stat info {};
    return stat((directory / launch::manifest_name).c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Result<std::filesystem::path> resolve_installation(const std::filesystem::path& directory) {
    auto found = TRY(resolve(directory));
    if (is_installation(found)) return found;
    // Inside a session, the environment itself is mounted at that path.
    const bool inside = value_of("CONTAINERIZE_PREFIX") != nullptr;
    return fail_input("this is not an installation", {}, found.string(),
                      inside
                          ? "You may be inside an installation (`containerize shell`, `run`). Leave it first."
                          : "Give a directory that `containerize new --prefix` created.");
}

namespace {

/// The same check as at the start of a wrapper: anybody could have put a manifest into /tmp.
bool made_together(const std::filesystem::path& program, const std::filesystem::path& directory) {
    struct stat own {};
    struct stat place {};
    struct stat manifest {};
    return stat(program.c_str(), &own) == 0 && stat(directory.c_str(), &place) == 0 &&
           stat((directory / launch::manifest_name).c_str(), &manifest) == 0 &&
           why_foreign(place, manifest, own.st_uid) == nullptr;
}

} // namespace

std::filesystem::path installation_of_program(const std::filesystem::path& program) {
    std::error_code ignored;
    const auto real = std::filesystem::canonical(program, ignored);
    if (real.empty()) return {};
    for (auto directory = real.parent_path(); directory != directory.root_path();
         directory = directory.parent_path())
        if (is_installation(directory))
            return made_together(real, directory) ? directory : std::filesystem::path();
    return {};
}

} // namespace containerize::manifest

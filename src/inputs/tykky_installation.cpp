#include "inputs/tykky_installation.h"

#include "core/entries.h"
#include "core/fd.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "image/layers_view.h"
#include "image/reader.h"
#include "manifest/manifest.h"
#include "util/log.h"
#include "util/yaml_file.h"

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <unistd.h>

namespace containerize::inputs {

namespace {

constexpr const char* settings_name = "share/conf.yaml";
constexpr const char* script_name = "common.sh";

std::unexpected<Error> no_tykky(const fs::path& directory, const std::string& why) {
    return fail_input("this is not a tykky installation", why, directory.string(),
                      manifest::is_installation(directory)
                          ? "It is already a containerize installation."
                          : "Give the directory that tykky's `new --prefix` created.");
}

/// The value of a key; empty if it is missing or no scalar.
std::string text_of(const YamlFile& settings, const char* key) {
    const auto node = settings.root()[key];
    return node && node.IsScalar() ? node.Scalar() : std::string();
}

Result<std::string> required(const YamlFile& settings, const char* key) {
    auto text = text_of(settings, key);
    if (text.empty())
        return settings.refuse(settings.root(), "`" + std::string(key) + ":` is missing",
                               "Import a complete installation that tykky's commands created.");
    return text;
}

bool is_file_name(const std::string& name) {
    return name != "." && name != ".." && name.find('/') == std::string::npos;
}

/// Such an installation has no image to take over: the error names the command that makes an equivalent one.
Status refuse_container(const YamlFile& settings, const TykkyInstallation& tykky) {
    std::string paths;
    if (const auto list = settings.root()["wrapper_paths"]; list && list.IsSequence())
        for (const auto& node : list)
            if (node.IsScalar()) paths += (paths.empty() ? "" : ",") + node.Scalar();
    const auto& image = tykky.container_image;
    return fail_input("a wrapped container cannot be imported",
                      "its programs are in the container, not in an image of their own",
                      tykky.directory.string(),
                      "Wrap it again: containerize wrap-container " +
                          shell_quoted(image.empty() ? tykky.container : image.string()) + " -w " +
                          (paths.empty() ? "PATHS" : shell_quoted(paths)) + " --prefix NEWPREFIX");
}

Status read_mode(const YamlFile& settings, TykkyInstallation& tykky) {
    tykky.mode = TRY(required(settings, "mode"));
    tykky.container = text_of(settings, "container_src");
    const auto isolated = text_of(settings, "isolate");
    tykky.isolated = isolated == "true" || isolated == "yes";
    const auto container = text_of(settings, "container_image");
    if (!container.empty()) tykky.container_image = (tykky.directory / container).lexically_normal();
    if (tykky.mode == "wrapcont") return refuse_container(settings, tykky);
    if (tykky.mode == "wrapdisk") {
        tykky.environments = {"."};
        return {};
    }
    if (tykky.mode != "conda" && tykky.mode != "venv")
        return settings.refuse(settings.root()["mode"], "installations of this mode cannot be imported",
                               "conda, venv and wrapdisk can be imported.");
    auto name = TRY(required(settings, "env_name"));
    if (!is_file_name(name))
        return settings.refuse(settings.root()["env_name"], "invalid name of an environment");
    if (tykky.mode == "venv")
        tykky.environments = {name};
    else // older versions of tykky used miniconda
        tykky.environments = {fs::path("miniforge/envs") / name, fs::path("miniconda/envs") / name};
    return {};
}

/// Directories of the host over which no image may be mounted.
bool is_of_the_system(const fs::path& path) {
    constexpr std::array directories = {"/",     "/bin",  "/boot", "/dev",  "/etc", "/home", "/lib", "/lib64",
                                        "/proc", "/root", "/run",  "/sbin", "/sys", "/tmp",  "/usr", "/var"};
    return std::ranges::find(directories, path) != directories.end();
}

Status read_image(const YamlFile& settings, TykkyInstallation& tykky) {
    auto name = TRY(required(settings, "sqfs_image"));
    if (!is_file_name(name)) return settings.refuse(settings.root()["sqfs_image"], "invalid file name");
    tykky.image = tykky.directory / name;
    const Fd file(open(tykky.image.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) {
        auto error = fail_errno("cannot open the image", tykky.image.string());
        error.error().fault = Fault::input;
        return error;
    }
    if (auto good = image::Reader::check(file.get(), tykky.image); !good) {
        good.error().fault = Fault::input;
        good.error().hint = "Build it again with `containerize new`. Its inputs are in " +
                            (tykky.directory / "share/previous_input").string() + ".";
        return good;
    }
    auto path = TRY(required(settings, "installation_path"));
    tykky.path_inside = fs::path(path).lexically_normal();
    if (!tykky.path_inside.has_filename()) tykky.path_inside = tykky.path_inside.parent_path();
    if (!tykky.path_inside.is_absolute() || is_of_the_system(tykky.path_inside))
        return settings.refuse(settings.root()["installation_path"],
                               "an image cannot be mounted at this path");
    return {};
}

void read_wrapper_paths(const YamlFile& settings, TykkyInstallation& tykky) {
    const auto list = settings.root()["wrapper_paths"];
    if (!list || !list.IsSequence()) return;
    for (const auto& node : list) {
        if (!node.IsScalar()) continue;
        auto path = fs::path(node.Scalar()).lexically_normal();
        if (!path.has_filename()) path = path.parent_path();
        if (path.is_absolute() && !is_below(path, tykky.path_inside)) {
            log::warn("the programs in " + path.string() + " are not in the image, so they get no wrappers.");
            continue;
        }
        const auto relative = path.is_absolute() ? path.lexically_relative(tykky.path_inside) : path;
        if (relative != ".") tykky.wrapper_paths.push_back(relative.string());
    }
}

void list_records(TykkyInstallation& tykky) {
    tykky.records = {tykky.directory / settings_name, tykky.directory / script_name};
    std::error_code failed;
    for (const auto& entry : entries_below(tykky.directory / "share/previous_input", failed))
        if (entry.symlink_status(failed).type() == fs::file_type::regular)
            tykky.records.push_back(entry.path());
}

} // namespace

Result<TykkyInstallation> read_tykky_installation(const fs::path& directory) {
    TykkyInstallation tykky;
    tykky.directory = TRY(resolve(directory));
    for (const char* name : {settings_name, script_name})
        if (!quiet::is_regular_file(tykky.directory / name))
            return no_tykky(directory, "it has no " + std::string(name));
    auto settings = TRY(YamlFile::read(tykky.directory / settings_name));
    if (!settings.root().IsMap())
        return no_tykky(directory, std::string(settings_name) + " contains no settings");
    TRY(read_mode(settings, tykky));
    TRY(read_image(settings, tykky));
    read_wrapper_paths(settings, tykky);
    list_records(tykky);
    return tykky;
}

Result<bool> needs_container(const TykkyInstallation& tykky) {
    if (tykky.mode == "wrapdisk") return false;
    auto layers = TRY(image::open_layers(std::array{tykky.image}));
    const image::LayersView image(std::move(layers));
    for (const auto& environment : tykky.environments) {
        const auto programs = "/" / environment / "bin";
        if (!image.exists(programs.string())) continue;
        const auto python = image.resolve_missing((programs / "python").string());
        const bool own = !python || image.is_program(*python) || is_below(*python, tykky.path_inside);
        return !own && (tykky.isolated || access(python->c_str(), X_OK) != 0);
    }
    return false;
}

nlohmann::json record_of(const TykkyInstallation& tykky, const fs::path& environment) {
    return {{"directory", tykky.directory.string()},
            {"mode", tykky.mode},
            {"installation_path", tykky.path_inside.string()},
            {"environment", environment.string()},
            {"container", tykky.container}};
}

EnvironmentPlace place_of_environment(const nlohmann::json& build, const fs::path& prefix) {
    const auto tykky = build.find("tykky");
    if (tykky == build.end()) return {.relative = ".", .inside = prefix};
    const fs::path relative = tykky->value("environment", "."), path = tykky->value("installation_path", "/");
    return {.relative = relative, .inside = (path / relative).lexically_normal()};
}

Status link_environment(const fs::path& root, const fs::path& environment) {
    if (environment == ".") return {};
    std::error_code failed;
    const auto entries = entries_in(root / environment, failed);
    if (failed) return fail_errno("cannot read the directory", (root / environment).string(), failed.value());
    for (const auto& entry : entries) {
        const auto name = entry.path().filename();
        const auto target = environment / name;
        if (fs::read_symlink(root / name, failed) == target) continue;
        fs::create_symlink(target, root / name, failed);
        if (failed == std::errc::file_exists) {
            log::detail("the environment's " + name.string() +
                        " is hidden by a file of the same name beside it");
            failed.clear();
        }
        if (failed) break;
    }
    if (failed) return fail_errno("cannot create a link", root.string(), failed.value());
    return {};
}

} // namespace containerize::inputs

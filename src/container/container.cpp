#include "container/container.h"

#include "container/host_root.h"
#include "core/fd.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/variables.h"
#include "fuse/server.h"
#include "image/layers.h"
#include "image/tree_view.h"
#include "launch/carried_call.h"
#include "manifest/manifest.h"
#include "mounts/mount_point.h"
#include "root/root.h"
#include "util/process.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::container {

namespace {

/// Searched for container runtimes after the caller's PATH.
constexpr const char* usual_path = "/usr/local/bin:/usr/bin:/bin:/opt/apptainer/bin:/opt/singularity/bin";
// The only variables of the caller that the runtime gets. The program gets all of them (carried_call.h).
constexpr std::array<Variable, 15> passed_variables = {"HOME",
                                                       "USER",
                                                       "LOGNAME",
                                                       "TERM",
                                                       "TMPDIR",
                                                       "XDG_RUNTIME_DIR",
                                                       "LD_LIBRARY_PATH", // for a runtime of a module
                                                       "APPTAINER_TMPDIR",
                                                       "APPTAINER_CACHEDIR",
                                                       "APPTAINER_CONFIGDIR",
                                                       "APPTAINER_CONFIG_FILE",
                                                       "SINGULARITY_TMPDIR",
                                                       "SINGULARITY_CACHEDIR",
                                                       "SINGULARITY_CONFIGDIR",
                                                       "SINGULARITY_CONFIG_FILE"};

bool exists(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0;
}

/// A field of the comma-separated value of the runtimes' option --mount, quoted if necessary.
std::string quoted_field(const std::string& key, const std::string& value) {
    std::string field = key + "=" + value;
    if (field.find_first_of(",\"\n") == std::string::npos) return field;
    replace_all(field, "\"", "\"\"");
    return '"' + field + '"';
}

/// PATH for the runtime, without our wrappers: a wrapper that it called would start the runtime again.
std::string path_without_installations(std::string_view path) {
    std::string kept;
    for (const auto element : split(path, ':')) {
        const std::string directory(element);
        if (!directory.starts_with('/') || !manifest::installation_of_program(directory + "/.").empty())
            continue;
        kept += directory + ":";
    }
    return kept + usual_path;
}

class ContainerCommand {
public:
    ContainerCommand(const ContainerCall& call, manifest::Manifest manifest)
        : call_(call), manifest_(std::move(manifest)), path_(path_without_installations(variable("PATH"))) {}

    Status execute() {
        TRY(choose_runtime());
        add_options();
        TRY(add_root());
        TRY(add_binds());
        TRY(add_images());
        arguments_.push_back(root_);
        TRY(add_program());
        execve(runtime_.c_str(), pointers_to(arguments_).data(), pointers_to(environment_).data());
        return fail_errno("cannot start the container runtime", runtime_);
    }

private:
    Status choose_runtime() {
        const auto insisted = TRY(launch::engine_of_environment());
        const auto recorded = TRY(launch::parse_engine(manifest_.settings.engine));
        const launch::Engine engine = insisted == launch::Engine::automatic ? recorded : insisted;
        if (engine == launch::Engine::native)
            return no_runtime("this installation is set to use the native engine");
        for (const auto candidate : {launch::Engine::apptainer, launch::Engine::singularity}) {
            if (engine != launch::Engine::automatic && engine != candidate) continue;
            // "singularity" is also a game, which Debian puts in /usr/games.
            const auto is_a_runtime = [](const fs::path& program) {
                return manifest::installation_of_program(program).empty() &&
                       program.parent_path().filename() != "games";
            };
            const auto found = find_program(to_text(candidate), path_, is_a_runtime);
            if (!found) continue;
            runtime_ = found->string();
            return {};
        }
        return no_runtime(engine == launch::Engine::automatic ? "neither apptainer nor singularity is on PATH"
                                                              : to_text(engine) + " is not on PATH");
    }

    Status no_runtime(const std::string& why) const {
        Error error{.what = "no engine can run this installation here",
                    .why = why,
                    .where = call_.prefix,
                    .hint = "Load a module with a container runtime, if there is one, or set "
                            "CONTAINERIZE_ENGINE to another engine."};
        if (!call_.native_failure.empty())
            error.hint = "The native engine: " + call_.native_failure + "\n" + error.hint;
        return fail(std::move(error));
    }

    void add_options() {
        arguments_ = {
            runtime_,     "--silent",
            "exec",       "--no-home",
            "--pwd",      "/",
            "--no-mount", manifest_.settings.base.is_host() ? "home,cwd,tmp,bind-paths" : "home,cwd"};
        if (manifest_.settings.base.isolate) arguments_.emplace_back("--contain");
    }

    Status add_root() {
        auto state = TRY(launch::open_state_directory());
        auto host = TRY(make_host_root(state));
        if (manifest_.settings.base.is_host()) {
            root_ = host.directory.string();
            for (const auto& name : host.names)
                add_mount(name, name);
            return {};
        }
        root_ = manifest_.settings.base.file.string();
        if (!exists(root_)) return fail_errno("cannot open the base", root_, ENOENT);
        add_gpu_options();
        TRY(inject());
        if (manifest_.settings.base.isolate) return {};
        for (const auto& name : host.names)
            if (!launch::is_of_base(std::string_view(name).substr(1))) add_mount(name, name);
        if (const char* home = value_of("HOME"); home != nullptr && *home == '/' && exists(home))
            add_mount(home, home);
        return {};
    }

    // Only for a base: the host's own root has its drivers.
    void add_gpu_options() {
        const auto wanted = root::wanted_gpu(manifest_);
        manifest_.settings.gpu = wanted;
        for (const auto* vendor : gpu::vendors) {
            if (vendor->runtime_option == nullptr) continue;
            if (wanted != vendor->option && (wanted != "auto" || !exists(vendor->runtime_node))) continue;
            arguments_.emplace_back(vendor->runtime_option);
            manifest_.settings.gpu = "none"; // the runtime provides the drivers
        }
    }

    /// Binds libraries of the host, and drivers for which the runtime has no option.
    Status inject() {
        if (manifest_.settings.gpu == "none" && manifest_.settings.host_libraries.empty()) return {};
        auto view = TRY(open_root());
        const auto injection = root::find_drivers(*view, manifest_, call_.prefix);
        for (const auto& bind : injection.binds)
            if (exists(bind.source)) add_mount(bind.source, bind.target, bind.read_only ? ",ro" : "");
        // No link can be created in the container's root, so the file is bound at the link's path, too.
        for (const auto& [path, target] : injection.links) {
            const auto file = (fs::path(path).parent_path() / target).string();
            const auto bind = std::ranges::find(injection.binds, file, &manifest::Bind::target);
            if (bind != injection.binds.end()) add_mount(bind->source, path, ",ro");
        }
        for (const auto& warning : injection.warnings)
            std::fprintf(stderr, "containerize: warning: %s\n", warning.c_str());
        injected_environment_ = injection.environment;
        return {};
    }

    [[nodiscard]] Result<std::unique_ptr<image::TreeView>> open_root() const {
        if (fs::is_directory(root_)) return std::make_unique<image::DirectoryView>(root_);
        return root::open_tree(manifest_.settings.base);
    }

    Status add_binds() {
        auto binds = manifest_.settings.binds;
        // The runtime itself reads the binds in its own variables.
        auto asked = TRY(root::binds_of_environment());
        binds.insert(binds.end(), asked.begin(), asked.end());
        for (const auto& bind : binds) {
            if (exists(bind.source))
                add_mount(bind.source, bind.target, bind.read_only ? ",ro" : "");
            else if (bind.required)
                return fail_errno("the source of a required bind is missing", bind.source, ENOENT);
        }
        return {};
    }

    Status add_images() {
        TRY(manifest::open_images(manifest_, call_.prefix));
        for (const auto& place : {fs::path(call_.prefix), manifest_.prefix, manifest_.mask}) {
            if (place.empty() || (place == call_.prefix && !shown_.empty())) continue;
            TRY(make_place(place));
            TRY(show_at(place.string()));
            shown_.push_back(place);
        }
        return {};
    }

    Status show_at(const std::string& place) {
        if (manifest_.layers.empty()) {
            const auto image = call_.prefix + "/" + manifest_.image.file;
            add_mount(image, place, ",image-src=/");
            return {};
        }
        const auto server = call_.prefix + "/libexec/containerize-session";
        for (const auto& word : {call_.prefix, place})
            if (word.find_first_of(" \t\n\"'\\") != std::string::npos)
                return fail(
                    {.what = "a container runtime cannot run an updated installation at this path",
                     .why = "runtimes cannot start a FUSE server at a path with spaces, quotation marks or "
                            "backslashes",
                     .where = word,
                     .hint = "Merge the updates with `containerize squash`, or rename the directory."});
        arguments_.emplace_back("--fusemount");
        arguments_.push_back("host:" + server + " --serve " + call_.prefix + " " + place);
        return {};
    }

    // Makes a mount point for the path before a move, or for a masked path. The rules are a session's, except
    // that no directory can be covered here.
    Status make_place(const fs::path& place) const {
        if (place == call_.prefix) return {};
        if (place == manifest_.prefix) TRY(manifest::check_first_path(manifest_, call_.prefix));
        if (const auto foreign =
                find_foreign(place.string(), mounts::rules_of_other_place(call_.prefix, lstat)))
            return mounts::no_safe_place(place, *foreign);
        std::error_code failed;
        // The runtime itself creates names at the top of the container's root.
        if (fs::is_directory(place, failed) || mounts::nearest_directory(place) == place.root_path())
            return {};
        if (const auto made = make_directories(place); !made)
            return fail({.what = "cannot create the installation's original path",
                         .why = made.error().why,
                         .where = place.string(),
                         .hint = "Build the installation again where it is now."});
        return {};
    }

    Status add_program() {
        auto carried = launch::call_of_this_process();
        carried.program = call_.program;
        carried.target = call_.target;
        carried.through_prefix = call_.through_prefix;
        carried.arguments = call_.arguments;
        carried.plan = manifest::plan_of(manifest_, call_.prefix, {});
        carried.plan.root = root::environment_of(manifest_.settings.base);
        carried.plan.root.insert(carried.plan.root.end(), injected_environment_.begin(),
                                 injected_environment_.end());
        // Where the runtime puts drivers (Vendor::runtime_option).
        if (!manifest_.settings.base.is_host())
            carried.plan.root.push_back(
                {launch::EnvironmentChange::Kind::append, "LD_LIBRARY_PATH", "/.singularity.d/libs"});
        // By descriptor, because the image hides the path.
        const Fd launcher(open(call_.program.c_str(), O_PATH | O_CLOEXEC));
        carried.launcher_fd = fcntl(launcher.get(), F_DUPFD, STDERR_FILENO + 1);
        if (carried.launcher_fd < 0) return fail_errno("cannot open", call_.program);
        auto packed = TRY(launch::pack(carried));
        for (const auto name : passed_variables)
            if (const char* value = value_of(name))
                environment_.push_back(std::string(name.name()) + "=" + value);
        environment_.push_back("PATH=" + path_);
        environment_.push_back(std::string(launch::call_variable.name()) + "=" +
                               std::to_string(packed.release()));
        arguments_.push_back("/proc/self/fd/" + std::to_string(carried.launcher_fd));
        return {};
    }

    void add_mount(const std::string& source, const std::string& target, const std::string& options = {}) {
        arguments_.emplace_back("--mount");
        arguments_.push_back("type=bind," + quoted_field("source", source) + "," +
                             quoted_field("destination", target) + options);
    }

    const ContainerCall& call_;
    manifest::Manifest manifest_;
    std::string path_;    ///< PATH for the runtime
    std::string runtime_; ///< its executable
    std::string root_;
    std::vector<launch::EnvironmentChange> injected_environment_;
    std::vector<fs::path> shown_; ///< where the images are mounted
    std::vector<std::string> arguments_, environment_;
};

} // namespace

Status run_in_container(const ContainerCall& call) {
    auto manifest = TRY(manifest::read_manifest(call.prefix));
    return ContainerCommand(call, std::move(manifest)).execute();
}

Result<int> serve_container(const std::string& prefix, const std::string& device) {
    static constexpr std::string_view start = "/dev/fd/";
    const auto number = device.starts_with(start) ? device.substr(start.size()) : "";
    Fd mounted(to_number<int>(number).value_or(-1));
    auto manifest = TRY(manifest::read_manifest(prefix));
    const auto layers = TRY(manifest::open_layers(manifest, prefix));
    auto connection = TRY(fuse::connect_fuse(std::move(mounted)));
    return fuse::serve_fuse(*layers, connection) == 0 ? 0 : 1;
}

} // namespace containerize::container

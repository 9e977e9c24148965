#include "build/develop.h"

#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/ownership.h"
#include "environments/environ_script.h"
#include "environments/root_of_build.h"
#include "launch/namespace.h"
#include "prefix/states.h"
#include "root/root.h"
#include "util/digest.h"
#include "util/file_lock.h"
#include "util/log.h"
#include "util/process.h"

#include <utility>

#include <fmt/format.h>

namespace containerize::build {

namespace {

using manifest::Manifest;

constexpr const char* remedy = "Choose a directory on a local disk of this node with --overlay.";
/// Marks an overlay that fuse-overlayfs has written: its whiteouts have their own format.
constexpr const char* mark_of_fuse_overlay = "by-fuse-overlayfs";

/// A directory for each installation, named after it.
Result<fs::path> default_overlay(const fs::path& prefix, const Environment& environment) {
    fs::path data = variable(environment, "XDG_DATA_HOME");
    if (!data.is_absolute()) {
        const auto home = variable(environment, "HOME");
        if (home.empty()) return fail_input("there is no home directory for the overlay", {}, {}, remedy);
        data = fs::path(home) / ".local/share";
    }
    const auto digest = sha256(prefix.string()).substr(0, 8);
    return data / "containerize/overlays" / (prefix.filename().string() + "-" + digest);
}

// An overlay belongs to one state of one installation: over another, files of both would be mixed.
Status check_owner(const fs::path& overlay, const Manifest& manifest) {
    const auto file = overlay / "made-for";
    const auto mine = fmt::format("{}\nstate {}\n", manifest.prefix.string(), manifest.state);
    if (!quiet::exists(file)) return write_file(file, mine);
    const auto text = TRY(read_file(file));
    if (text == mine) return {};
    if (!text.starts_with(manifest.prefix.string() + "\n"))
        return fail_input("this overlay belongs to another installation", text.substr(0, text.find('\n')),
                          overlay.string(), "Choose another directory with --overlay.");
    const auto second = text.find('\n') + 1;
    log::warn("the overlay was created for " + text.substr(second, text.find('\n', second) - second) +
              " of this installation, which has been updated since. Their files may not match. To "
              "start again, remove " +
              overlay.string());
    return {};
}

/// The overlay's files hide those of the installation, so nobody else may have created them.
Status check_maker(const fs::path& overlay) {
    for (const auto* part : {environments::upper_name, "work"})
        if (const auto foreign = find_foreign((overlay / part).string()))
            return fail_input("this overlay could contain files of other users",
                              foreign->path + ": " + foreign->why, overlay.string(),
                              "Choose a directory of your own with --overlay.");
    return {};
}

std::vector<std::string> command_line(const DevOptions& options, const Manifest& manifest,
                                      const Environment& environment) {
    std::vector<std::string> argv = options.command;
    if (argv.empty()) {
        const auto shell = variable(environment, "SHELL");
        argv = {shell.empty() ? "/bin/bash" : shell};
    }
    // Run by a shell so that PATH is searched inside, where the overlay may have further programs.
    if (manifest.activation_scripts.empty()) {
        argv.insert(argv.begin(), {"sh", "-c", "exec \"$@\"", "sh"});
        return argv;
    }
    // These scripts depend on the caller, so they are sourced here as at every launch.
    std::string text;
    std::vector<std::string> whole = {"bash", "--noprofile", "--norc", "-c", "", "bash"};
    for (const auto& script : manifest.activation_scripts) {
        text += ". \"$1\"; shift; ";
        whole.push_back((manifest.prefix / script).string());
    }
    whole[4] = text + "exec \"$@\"";
    whole.insert(whole.end(), argv.begin(), argv.end());
    return whole;
}

/// Mounts the installation with the overlay at its prefix: by the kernel's overlayfs or, where that fails, as
/// on network filesystems, by fuse-overlayfs.
Status mount_overlay(environments::BuildNamespace& space, const Manifest& manifest, const fs::path& overlay,
                     const Environment& environment) {
    std::vector<fs::path> images;
    for (const auto& image : manifest.images())
        images.push_back(manifest.prefix / image.file);
    const auto mark = overlay / mark_of_fuse_overlay;
    std::error_code failed;
    const bool by_fuse = fs::exists(mark, failed);
    Error why_not{.what = "this overlay was created by fuse-overlayfs",
                  .why = "it marks removed files in that program's format",
                  .where = overlay.string(),
                  .hint = "Install fuse-overlayfs, or choose another directory with --overlay."};
    if (!by_fuse) {
        const bool by_kernel = fs::exists(overlay / environments::upper_name, failed) &&
                               !fs::is_empty(overlay / environments::upper_name, failed);
        auto mounted = space.mount_overlay(images, overlay, manifest.prefix);
        if (mounted) return {};
        if (interrupted()) return mounted;
        why_not = std::move(mounted.error());
        why_not.hint = remedy;
        if (by_kernel) return fail(std::move(why_not)); // fuse-overlayfs cannot read its format
    }
    const auto program = manifest.settings.base.is_host()
                             ? find_program("fuse-overlayfs", search_path(environment))
                             : std::nullopt;
    if (!program) return fail(std::move(why_not));
    TRY(write_file(mark, ""));
    auto mounted = space.mount_fuse_overlay(*program, images, overlay, manifest.prefix);
    if (!mounted && !by_fuse) fs::remove(mark, failed);
    return mounted;
}

Result<environments::BuildNamespace> make_space(const Manifest& manifest, const fs::path& overlay,
                                                const Environment& environment) {
    inputs::Inputs inputs;
    inputs.environment = environment;
    inputs.settings.base = manifest.settings.base;
    inputs.settings.binds = manifest.settings.binds;
    std::error_code failed;
    inputs.working_directory = fs::current_path(failed);
    return environments::make_namespace(inputs, manifest.prefix, overlay);
}

} // namespace

Result<int> develop(const DevOptions& options) {
    auto manifest = TRY(prefix::read_changeable(options.prefix));
    const auto& prefix = manifest.prefix;
    auto environment = current_environment();
    auto overlay =
        TRY(options.overlay.empty() ? default_overlay(prefix, environment) : resolve(options.overlay));
    TRY(make_directories(overlay, "cannot create the overlay's directory"));
    TRY(check_maker(overlay));
    const auto lock = TRY(try_lock(overlay / "lock", 0600));
    if (lock.state == LockState::busy)
        return fail({.what = "this overlay is in use",
                     .why = "another `containerize dev` uses it",
                     .where = overlay.string(),
                     .hint = "Work in that one, or choose another directory with --overlay."});
    TRY(check_owner(overlay, manifest));

    auto space = TRY(make_space(manifest, overlay, environment));
    TRY(mount_overlay(space, manifest, overlay, environment));
    log::info("Your changes in " + prefix.string() + " are kept in " + overlay.string() +
              ", and only you see them.");
    const auto of_root = root::environment_of(manifest.settings.base);
    for (const std::vector<launch::EnvironmentChange>* changes :
         {&of_root, &std::as_const(manifest).activation, &std::as_const(manifest).environment})
        environment = environments::with_changes(environment, *changes, prefix);
    environment["CONTAINERIZE_PREFIX"] = prefix.string();
    const pid_t holder = space.pid();
    std::error_code failed;
    return run_in_foreground({.argv = command_line(options, manifest, environment),
                              .environment = environment,
                              .working_directory = fs::current_path(failed),
                              .in_child = [holder] { return launch::join_namespaces(holder); }});
}

} // namespace containerize::build

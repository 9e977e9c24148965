#include "build/record_profile.h"

#include "build/build.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/staging.h"
#include "image/access_profile.h"
#include "launch/namespace.h"
#include "manifest/manifest.h"
#include "mounts/cold_start.h"
#include "prefix/cleanup_process.h"
#include "util/background.h"
#include "util/log.h"
#include "util/process.h"
#include "util/progress.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

namespace containerize::build {

namespace {

/// A session that records ends at once, unless a command left a process behind.
constexpr auto longest_end = std::chrono::seconds(5);

/// The command line that runs `command` inside, through a wrapper.
std::vector<std::string> inside(const fs::path& prefix, const std::vector<std::string>& command) {
    std::vector<std::string> argv = {(prefix / "bin/_debug_exec").string()};
    argv.insert(argv.end(), command.begin(), command.end());
    return argv;
}

Environment recording_environment(const fs::path& record) {
    auto environment = current_environment();
    environment[launch::record_variable.name()] = record.string();
    environment[launch::prefetch_variable.name()] = "off"; // reading ahead would hide which blocks are wanted
    environment["CONTAINERIZE_SESSION_IDLE"] = "0";
    environment["CONTAINERIZE_ENGINE"] = "native"; // only this engine uses our file server, which records
    return environment;
}

Result<int> run_recorded(std::vector<std::string> argv, Environment environment, bool at_terminal) {
    // A process in a new namespace finds no session, so it starts one: with nothing cached and with servers
    // that record.
    const Command command{.argv = std::move(argv), .environment = std::move(environment), .in_child = [] {
                              return launch::enter_new_namespaces() ? 0 : EPERM;
                          }};
    if (at_terminal) return run_in_foreground(command);
    auto outcome = TRY(run(command));
    return outcome.exit_code;
}

/// Servers hold a shared lock on the record as long as they live.
void wait_for_end_of_session(const fs::path& record) {
    const Fd file(open(record.c_str(), O_RDONLY | O_CLOEXEC));
    const auto until = std::chrono::steady_clock::now() + longest_end;
    while (file && flock(file.get(), LOCK_EX | LOCK_NB) != 0 && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

bool has_python(const fs::path& prefix) {
    std::error_code failed;
    return fs::exists(fs::symlink_status(prefix / "bin/python", failed));
}

/// Imports the packages that Python finds, with a temporary home directory in `staging`.
Result<int> run_imports(const fs::path& prefix, const ProfileRequest& request, Environment environment,
                        const fs::path& staging) {
    if (!has_python(prefix)) return 0;
    const auto home = staging / "home";
    TRY(make_directories(home));
    environment["HOME"] = environment["XDG_CACHE_HOME"] = environment["XDG_CONFIG_HOME"] = home.string();
    // Python could recreate directories of an installation that is being removed, for byte-code.
    environment["PYTHONDONTWRITEBYTECODE"] = "1";
    environment.erase("DISPLAY");
    environment.erase("WAYLAND_DISPLAY");
    auto script = TRY(read_file(request.share / "profile/imports.py"));
    return run_recorded({(prefix / "bin/python").string(), "-c", script}, std::move(environment), false);
}

/// `were` are the images when the recording began: another build may have put others in their place.
Status write_profiles(const fs::path& prefix, const std::vector<manifest::ImageFile>& were,
                      const fs::path& record, bool replace) {
    const auto manifest = TRY(manifest::read_manifest(prefix));
    auto text = TRY(read_file(record));
    auto recorded = TRY(image::parse_record(text, record));
    if (recorded.empty())
        return fail({.what = "nothing was recorded",
                     .why = "no program read anything from the installation",
                     .where = prefix.string(),
                     .hint = "Give a command that uses the installation."});
    for (const auto& image : manifest.images()) {
        if (std::ranges::find(were, image) == were.end()) continue;
        image::Profile profile{.image = image.sha256, .blocks = recorded[(prefix / image.file).string()]};
        if (!replace) profile = merged(std::move(profile), profile_beside(prefix, image));
        TRY(write_file(mounts::profile_of(prefix / image.file), to_text(profile)));
    }
    return {};
}

std::string as_text(const ProfileCoverage& coverage) {
    return fmt::format("{} in {}", human_bytes(coverage.bytes), counted(coverage.requests, "request"));
}

} // namespace

image::Profile profile_beside(const fs::path& prefix, const manifest::ImageFile& image) {
    const auto path = mounts::profile_of(prefix / image.file);
    const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file)
        if (auto profile = mounts::read_profile(file.get(), path, image.sha256)) return std::move(*profile);
    return {.image = image.sha256, .blocks = {}};
}

Result<Recording> record_profile(const fs::path& prefix, const ProfileRequest& request) {
    const auto images = TRY(manifest::read_manifest(prefix)).images();
    auto cleanup = TRY(prefix::CleanupProcess::start());
    cleanup.sweep_staging_later(request.staging_parent);
    auto staging = TRY(Staging::create(request.staging_parent));
    cleanup.remove_tree_later(staging.path());
    const auto record = staging.path() / "record";
    TRY(write_file(record, ""));
    const auto environment = recording_environment(record);
    Recording recording;
    if (request.commands.empty()) {
        recording.exit_code = TRY(run_imports(prefix, request, environment, staging.path()));
    }
    for (const auto& command : request.commands) {
        auto done = TRY(run_recorded(inside(prefix, command), environment, request.at_terminal));
        if (done != 0) recording.exit_code = done;
    }
    wait_for_end_of_session(record);
    if (interrupted()) return fail_interrupted();
    // A command that failed may have read too little to replace the earlier profile.
    const bool replace = request.replace && recording.exit_code == 0;
    TRY(write_profiles(prefix, images, record, replace));
    recording.coverage = TRY(profile_coverage(prefix));
    return recording;
}

Result<ProfileCoverage> profile_coverage(const fs::path& prefix) {
    auto manifest = TRY(manifest::read_manifest(prefix));
    ProfileCoverage coverage;
    for (const auto& image : manifest.images()) {
        const auto profile = profile_beside(prefix, image);
        coverage.blocks += profile.blocks.size();
        coverage.bytes += profile.bytes();
        coverage.requests += requests_for(profile.blocks, {}).size();
    }
    return coverage;
}

void record_after_build(const inputs::BuildOptions& options, bool replace) {
    if (!options.profile) return;
    const auto prefix = resolve(options.prefix);
    if (!prefix) return;
    ProfileRequest request{
        .replace = replace, .share = options.share, .staging_parent = options.staging_parent};
    for (const auto& command : options.profile_commands)
        request.commands.push_back({"/bin/sh", "-c", command});
    if (request.commands.empty() && !has_python(*prefix)) return; // nothing to run
    if (request.commands.empty() && options.layout.value_or(inputs::Layout::path) == inputs::Layout::path) {
        // Nothing that follows needs the result, and the imports of all packages can take as long as the rest
        // of the build.
        auto environment = current_environment();
        if (!options.staging_parent.empty()) environment["TMPDIR"] = options.staging_parent.string();
        const auto started = start_in_background({"profile", prefix->string()}, environment);
        log::info(started ? "What programs read first is recorded in the background."
                          : "What programs read first is not recorded: " + to_string(started.error()));
        return;
    }
    Stage stage("Recording what programs read first");
    const auto recording = record_profile(*prefix, request);
    if (recording && recording->exit_code != 0 && !request.commands.empty())
        log::warn("a command of --profile ended with exit code " + std::to_string(recording->exit_code));
    if (recording)
        stage.finish(as_text(recording->coverage));
    else if (request.commands.empty())
        stage.finish("skipped: " + recording.error().what);
    else
        log::warn(to_string(recording.error()));
}

} // namespace containerize::build

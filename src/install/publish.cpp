#include "install/publish.h"

#include "util/filesystem.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::install {

namespace {

using runtime::Manifest;

constexpr const char* image_name = "env.sqfs";

/// "env.sqfs", or the first of "env.1.sqfs", ... that is free: an image in use is never overwritten.
std::string free_image_name(const fs::path& prefix) {
    std::error_code failed;
    std::string name = image_name;
    for (int i = 1; fs::exists(fs::symlink_status(prefix / name, failed)); ++i)
        name = "env." + std::to_string(i) + ".sqfs";
    return name;
}

bool is_image_name(const std::string& name) {
    return name.starts_with("env.") && name.ends_with("sqfs");
}

Status move(const fs::path& from, const fs::path& to) {
    if (rename(from.c_str(), to.c_str()) != 0) return fail_errno("cannot put into place", to.string());
    return {};
}

// Every file of `from`, by name, over those of `to`: the launchers of both are interchangeable.
Status move_files(const fs::path& from, const fs::path& to) {
    std::error_code failed;
    fs::create_directories(to, failed);
    for (const auto& entry : fs::directory_iterator(from, failed)) {
        if (fs::is_directory(entry.symlink_status())) {
            if (auto moved = move_files(entry.path(), to / entry.path().filename()); !moved) return moved;
        } else if (auto moved = move(entry.path(), to / entry.path().filename()); !moved) {
            return moved;
        }
    }
    if (failed) return fail_errno("cannot put into place", to.string(), failed.value());
    return {};
}

std::set<std::string> names_in(const fs::path& directory) {
    std::set<std::string> names;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(directory, failed))
        names.insert(entry.path().filename().string());
    return names;
}

// After the manifest has changed: whatever the new installation does not have. Failures leave litter, no
// harm.
void remove_what_is_gone(const fs::path& prefix, const Manifest& manifest, const Manifest* old,
                         const std::vector<std::set<std::string>>& wrappers) {
    std::error_code ignored;
    for (const auto& name : names_in(prefix))
        if ((is_image_name(name) && name != manifest.image.file) || name.starts_with(".containerize-"))
            [[maybe_unused]]
            const auto removed = remove_tree(prefix / name);
    for (std::size_t i = 0; i < manifest.wrapper_paths.size(); ++i)
        for (const auto& name : names_in(prefix / manifest.wrapper_paths[i]))
            if (!wrappers[i].contains(name)) fs::remove(prefix / manifest.wrapper_paths[i] / name, ignored);
    if (old == nullptr) return;
    for (const auto& path : old->wrapper_paths)
        if (std::ranges::find(manifest.wrapper_paths, path) == manifest.wrapper_paths.end()) [[maybe_unused]]
            const auto removed = remove_tree(prefix / path);
}

Status sync_all(const fs::path& assembly) {
    std::error_code failed;
    for (const auto& entry : fs::recursive_directory_iterator(assembly, failed)) {
        if (fs::is_directory(entry.symlink_status())) {
            if (auto done = sync_directory(entry.path()); !done) return done;
            continue;
        }
        const Fd file(open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
        if (file && fsync(file.get()) != 0) return fail_errno("cannot write", entry.path().string());
    }
    return sync_directory(assembly);
}

Status publish_by_one_rename(const Claim& claim, const fs::path& assembly, const Manifest& manifest) {
    if (auto written = write_file(assembly / runtime::manifest_name, to_text(manifest)); !written)
        return written;
    if (auto synced = sync_all(assembly); !synced) return synced;
    if (auto moved = move(assembly, claim.prefix); !moved) return moved;
    return sync_directory(claim.prefix.parent_path());
}

Status publish_in_place(const Claim& claim, const fs::path& assembly, Manifest& manifest) {
    const auto& prefix = claim.prefix;
    const auto old = runtime::read_manifest(prefix);
    const std::string image = free_image_name(prefix);
    std::vector<std::set<std::string>> wrappers;
    for (const auto& path : manifest.wrapper_paths)
        wrappers.push_back(names_in(assembly / path));
    const std::string assembled_image = manifest.image.file;
    manifest.image.file = image;
    if (auto synced = sync_all(assembly); !synced) return synced;

    Status done = move(assembly / assembled_image, prefix / image);
    if (done) done = move_files(assembly / "libexec", prefix / "libexec");
    for (const auto& path : manifest.wrapper_paths)
        if (done) done = move_files(assembly / path, prefix / path);
    if (done) done = sync_directory(prefix);
    if (done) done = write_file(prefix / runtime::manifest_name, to_text(manifest));
    if (!done) {
        // The old installation, if any, goes on: its launchers and ours are the same. Else nothing may stay.
        std::error_code ignored;
        fs::remove(prefix / image, ignored);
        if (!old)
            for (const auto& name : names_in(prefix))
                [[maybe_unused]] const auto removed = remove_tree(prefix / name);
        return done;
    }
    if (auto removed = remove_tree(prefix / "share"); !removed) return removed;
    if (auto moved = move(assembly / "share", prefix / "share"); !moved) return moved;
    for (const auto& name : names_in(assembly)) // what is left are single files, such as pyvenv.cfg
        if (fs::is_regular_file(fs::symlink_status(assembly / name)))
            if (auto moved = move(assembly / name, prefix / name); !moved) return moved;
    remove_what_is_gone(prefix, manifest, old ? &*old : nullptr, wrappers);
    return {};
}

} // namespace

Result<fs::path> make_assembly(const Claim& claim, Janitor& janitor) {
    const fs::path parent = claim.existed ? claim.prefix : claim.prefix.parent_path();
    const std::string name =
        ".containerize-" + claim.prefix.filename().string() + "-" + std::to_string(getpid());
    fs::path assembly = parent / name;
    janitor.remove_tree_later(assembly);
    // 0777 less the umask, and the parent's group where that is inherited: the assembly becomes the prefix.
    if (mkdir(assembly.c_str(), 0777) != 0) return fail_errno("cannot make a directory", assembly.string());
    return assembly;
}

Status add_image(const fs::path& image, const fs::path& assembly, Manifest& manifest,
                 const std::function<void(std::uint64_t)>& progress) {
    struct stat info {};
    if (stat(image.c_str(), &info) != 0) return fail_errno("cannot examine the image", image.string());
    const auto size = static_cast<std::uint64_t>(info.st_size);
    auto room = available_bytes(assembly);
    if (room && *room < size)
        return fail({.what = "there is not enough room for the installation",
                     .why = "the image has " + std::to_string(size) + " bytes, " + std::to_string(*room) +
                            " are free",
                     .where = assembly.parent_path().string(),
                     .hint = "Make room, or choose a prefix on another filesystem."});
    auto digest = copy_file_synced(image, assembly / image_name, progress);
    if (!digest) return fail(std::move(digest.error()));
    manifest.image = {.file = image_name, .size = size, .sha256 = std::move(*digest)};
    return {};
}

Status publish(const Claim& claim, const fs::path& assembly, Manifest& manifest) {
    return claim.existed ? publish_in_place(claim, assembly, manifest)
                         : publish_by_one_rename(claim, assembly, manifest);
}

} // namespace containerize::install

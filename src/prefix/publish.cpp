#include "prefix/publish.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/version.h"
#include "image/access_profile.h"
#include "prefix/states.h"
#include "prefix/striping.h"
#include "root/root.h"
#include "util/copy.h"
#include "util/log.h"
#include "util/progress.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::prefix {

namespace {

using manifest::Manifest;

constexpr const char* libexec_name = "libexec";
constexpr std::string_view session_program_start = "containerize-session"; // the format follows

bool is_number(std::string_view name) {
    return to_number<unsigned>(name).has_value();
}

/// Whether free_image_name() gives such names. Others are the user's.
bool is_image_name(std::string_view name) {
    if (name == "env.sqfs") return true;
    if (!name.starts_with("env.") || !name.ends_with(".sqfs") || name.size() < 10) return false;
    return is_number(name.substr(4, name.size() - 9));
}

/// The image's name, given that of an image or of its profile.
std::string image_name(std::string name) {
    if (name.ends_with(image::profile_suffix)) name.resize(name.size() - image::profile_suffix.size());
    return name;
}

Status move(const fs::path& from, const fs::path& to) {
    if (rename(from.c_str(), to.c_str()) != 0) return fail_errno("cannot move into place", to.string());
    return {};
}

// Moves all files below `from` over those in `to`.
Status move_files(const fs::path& from, const fs::path& to) {
    TRY(make_directories(to));
    std::error_code failed;
    for (const auto& entry : entries_in(from, failed)) {
        const auto target = to / entry.path().filename();
        TRY(fs::is_directory(entry.symlink_status()) ? move_files(entry.path(), target)
                                                     : move(entry.path(), target));
    }
    if (failed) return fail_errno("cannot move into place", to.string(), failed.value());
    return {};
}

/// The names in a directory; none if there is no such directory.
Result<std::set<std::string>> names_if_there(const fs::path& directory) {
    std::error_code failed;
    auto names = names_in(directory, failed);
    if (failed && failed != std::errc::no_such_file_or_directory)
        return fail_errno("cannot read the directory", directory.string(), failed.value());
    return names;
}

/// Directories of wrappers, with the names that stay in them.
using WrapperNames = std::map<std::string, std::set<std::string>>;

// Removes all files in `directory` but those to keep; subdirectories stay.
void remove_wrappers(const fs::path& prefix, const fs::path& directory, const std::set<std::string>& keep) {
    std::error_code ignored;
    for (const auto& name : names_in(prefix / directory)) {
        const auto entry = prefix / directory / name;
        if (!keep.contains(name) && !fs::is_directory(fs::symlink_status(entry, ignored)))
            fs::remove(entry, ignored);
    }
    // Then remove the directory and its parents if they are empty.
    for (auto empty = directory; !empty.empty(); empty = empty.parent_path())
        if (rmdir((prefix / empty).c_str()) != 0) break;
}

void remove_old_record_links(const fs::path& prefix, const fs::path& state) {
    const auto current = fs::path("..") / state;
    for (const auto& name : names_in(prefix / share_name)) {
        std::error_code failed;
        const auto target = fs::read_symlink(prefix / share_name / name, failed);
        if (!failed && is_below(target, current.parent_path()) && !is_below(target, current))
            fs::remove(prefix / share_name / name, failed);
    }
}

std::set<std::string> names_of_states(const Manifest& current, const std::vector<Manifest>& kept) {
    std::set<std::string> names = {std::to_string(current.state)};
    for (const auto& state : kept)
        names.insert(std::to_string(state.state));
    return names;
}

// Removes directories of deleted states, and unused images. Goes on after a failure, which only leaves
// litter, and warns of it.
void remove_unreferenced(const fs::path& prefix, const Manifest& manifest,
                         const std::vector<Manifest>& kept) {
    std::set<std::string> images;
    const auto states = names_of_states(manifest, kept);
    const auto keep = [&](const Manifest& state) {
        for (const auto& image : state.images())
            images.insert(image.file);
    };
    keep(manifest);
    std::ranges::for_each(kept, keep);
    bool all_removed = true;
    const auto remove_others = [&](const fs::path& directory, const auto& is_kept) {
        const auto names = names_if_there(prefix / directory);
        if (!names) {
            all_removed = false;
            return;
        }
        for (const auto& name : *names)
            if (!is_kept(name) && !remove_tree(prefix / directory / name)) all_removed = false;
    };
    // States first: then, even if this is interrupted, each remaining state has all its images.
    remove_others(states_name,
                  [&](const std::string& name) { return !is_number(name) || states.contains(name); });
    remove_others("", [&](const std::string& name) {
        return !is_image_name(image_name(name)) || images.contains(image_name(name));
    });
    remove_others(layers_name, [&](const std::string& name) {
        return images.contains((fs::path(layers_name) / image_name(name)).string());
    });
    std::error_code ignored;
    fs::remove(prefix / layers_name, ignored); // fails unless it is empty
    if (!all_removed)
        log::warn("some files of old states could not be removed. The next change removes them.");
}

/// Moves each state into the assembly by one rename, so that no state is ever half removed.
void put_aside_old_states(const Publication& publication) {
    const auto kept = names_of_states(publication.manifest, publication.kept);
    const auto states = publication.lock.prefix / states_name;
    std::error_code ignored;
    for (const auto& name : names_in(states))
        if (is_number(name) && !kept.contains(name))
            fs::rename(states / name, publication.assembly / ("state-" + name), ignored);
}

// Removes what no state needs. Called after the manifest was replaced.
void remove_what_is_gone(const Publication& publication, const WrapperNames& wrappers) {
    const auto& prefix = publication.lock.prefix;
    const auto& manifest = publication.manifest;
    put_aside_old_states(publication);
    remove_unreferenced(prefix, manifest, publication.kept);
    remove_old_record_links(prefix, state_directory(manifest.state));
    std::error_code ignored;
    if (root::root_name(manifest).empty()) fs::remove(prefix / launch::root_file, ignored);
    for (const auto& [path, names] : wrappers)
        remove_wrappers(prefix, path, names);
}

/// The directories of wrappers of the old and the new state, with the names in the assembly. The record of
/// the root's files and links to records may be in them, too, so these must have been made. Session programs
/// of older formats stay until the next change: a launch that began with an older launcher still needs its
/// own.
Result<WrapperNames> wrappers_to_keep(const Publication& publication, const Result<Manifest>& old) {
    const auto& prefix = publication.lock.prefix;
    auto paths = publication.manifest.wrapper_paths;
    auto old_paths = old ? old->wrapper_paths : std::vector<std::string>();
    const bool also_for_wrappers = std::ranges::find(old_paths, libexec_name) != old_paths.end();
    if (old && old->programs_version == this_version) old_paths.emplace_back(libexec_name);
    for (const auto& path : old_paths) {
        // The manifest is not trusted: its paths must not lead out of the prefix.
        const auto real = resolve(prefix / path);
        if (fs::path(path).is_relative() && real && *real != prefix && is_below(*real, prefix))
            paths.push_back(path);
    }
    WrapperNames wrappers;
    for (const auto& path : paths)
        wrappers[path] = TRY(names_if_there(publication.assembly / path));
    if (const auto programs = wrappers.find(libexec_name); programs != wrappers.end() && !also_for_wrappers)
        for (const auto& name : names_in(prefix / libexec_name)) // other files are not ours
            if (!name.starts_with(session_program_start)) programs->second.insert(name);
    return wrappers;
}

/// "@HOST", the end of an assembly's name.
std::string this_host() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return "@" + std::string(name.data());
}

std::string assembly_name(const fs::path& prefix) {
    return own_leftovers + prefix.filename().string() + "-";
}

Status sync_all(const fs::path& assembly) {
    std::error_code failed;
    for (const auto& entry : entries_below(assembly, failed)) {
        if (fs::is_directory(entry.symlink_status())) {
            TRY(sync_directory(entry.path()));
            continue;
        }
        const Fd file(open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
        if (file && fsync(file.get()) != 0) return fail_errno("cannot write", entry.path().string());
    }
    if (failed) return fail_errno("cannot read the directory", assembly.string(), failed.value());
    return sync_directory(assembly);
}

// For steps after publication, which must not fail any more.
void note(const Status& done) {
    if (!done) log::warn(to_string(done.error()));
}

/// Links "share" to the records of the state that becomes current.
Status add_record_links(const Publication& publication) {
    const auto state = state_directory(publication.manifest.state);
    const auto share = publication.assembly / share_name;
    TRY(make_directories(share));
    for (const auto& holder : {publication.assembly, publication.lock.prefix})
        for (const auto& name : TRY(names_if_there(holder / state))) {
            std::error_code failed;
            if (name == launch::manifest_name) continue;
            fs::create_symlink(fs::path("..") / state / name, share / name, failed);
            if (failed && failed != std::errc::file_exists)
                return fail_errno("cannot create a link", (share / name).string(), failed.value());
        }
    return {};
}

/// Writes the manifest, and a copy into the state's directory.
Status write_manifest(const Publication& publication) {
    const auto& assembly = publication.assembly;
    const auto state = assembly / state_directory(publication.manifest.state);
    auto manifest = publication.manifest;
    manifest.programs_version = this_version; // also with a state that an older version made
    const auto text = to_text(manifest);
    TRY(write_file(assembly / launch::manifest_name, text));
    if (quiet::exists(state)) TRY(write_file(state / launch::manifest_name, text));
    if (const auto root = root::root_name(publication.manifest); !root.empty())
        TRY(write_file(assembly / launch::root_file, root));
    TRY(add_record_links(publication));
    return sync_all(assembly);
}

Status publish_by_one_rename(const Publication& publication) {
    const auto& prefix = publication.lock.prefix;
    TRY(write_manifest(publication));
    TRY(move(publication.assembly, prefix));
    note(sync_directory(prefix.parent_path()));
    return {};
}

// Moves all new files into place and, last, the manifest that refers to them.
Status move_new_files(const Publication& publication) {
    const auto& prefix = publication.lock.prefix;
    const auto& assembly = publication.assembly;
    std::error_code failed;
    for (const auto& image : publication.manifest.images()) {
        if (!fs::exists(assembly / image.file, failed)) continue; // belongs to an earlier state
        TRY(make_directories((prefix / image.file).parent_path()));
        TRY(move(assembly / image.file, prefix / image.file));
        TRY(sync_directory((prefix / image.file).parent_path()));
    }
    // A mixture of old and new launchers is harmless: each starts the session program of its own format,
    // which comes first.
    TRY(move_files(assembly / libexec_name, prefix / libexec_name));
    for (const auto& path : publication.manifest.wrapper_paths)
        TRY(move_files(assembly / path, prefix / path));
    const auto state = state_directory(publication.manifest.state);
    const auto manifest_of_state = assembly / "state.json";
    if (fs::exists(assembly / state, failed)) {
        // A state without a manifest does not count, so it counts only once it is the current one.
        TRY(move(assembly / state / launch::manifest_name, manifest_of_state));
        TRY(make_directories((prefix / state).parent_path()));
        TRY(move(assembly / state, prefix / state));
        TRY(sync_directory((prefix / state).parent_path()));
    }
    TRY(sync_directory(prefix));
    TRY(move(assembly / launch::manifest_name, prefix / launch::manifest_name));
    if (fs::exists(manifest_of_state, failed)) {
        fs::rename(manifest_of_state, prefix / state / launch::manifest_name, failed);
        fs::remove(manifest_of_state, failed);
    }
    return {};
}

/// The current state lacks its manifest if the command that published it was killed right then.
void complete_current_state(const fs::path& prefix, const Manifest& current) {
    const auto state = prefix / state_directory(current.state);
    if (!quiet::is_directory(state) || quiet::exists(state / launch::manifest_name)) return;
    note(write_file(state / launch::manifest_name, to_text(current)));
}

Status publish_in_place(const Publication& publication, CleanupProcess& cleanup) {
    const auto& prefix = publication.lock.prefix;
    const auto& assembly = publication.assembly;
    // Check again: somebody may have put files there during the build, which are not ours to remove.
    TRY(check_prefix(prefix.string(), true));
    const bool replacing = manifest::is_installation(prefix);
    const auto old = manifest::read_manifest(prefix);
    TRY(write_manifest(publication));
    const auto wrappers = TRY(wrappers_to_keep(publication, old));
    if (!replacing) { // after a failure, an empty directory must be empty again
        std::string list;
        for (const auto& name : names_in(assembly)) {
            cleanup.remove_tree_later(prefix / name);
            list += name + "\n";
        }
        TRY(write_file(assembly / names_to_come, list));
    }

    std::vector<std::string> new_images;
    std::error_code ignored;
    for (const auto& image : publication.manifest.images())
        if (fs::exists(assembly / image.file, ignored)) new_images.push_back(image.file);
    const bool new_state = fs::exists(assembly / state_directory(publication.manifest.state), ignored);
    if (auto done = move_new_files(publication); !done) {
        for (const auto& image : new_images)
            fs::remove(prefix / image, ignored);
        if (new_state) [[maybe_unused]]
            const auto removed = remove_tree(prefix / state_directory(publication.manifest.state));
        return done;
    }
    note(sync_directory(prefix));
    fs::remove(assembly / names_to_come, ignored);
    note(move_files(assembly, prefix)); // links to the records, and files such as pyvenv.cfg
    remove_what_is_gone(publication, wrappers);
    return {};
}

} // namespace

Status check_room(const PrefixLock& lock, std::uint64_t image_bytes) {
    constexpr std::uint64_t allowance = 8U << 20U; // the rest is small compared with an image
    const auto bytes = image_bytes + allowance;
    const auto room = available_bytes(lock.prefix);
    if (!room || *room >= bytes) return {};
    return fail({.what = "there is not enough space for the installation",
                 .why = "it needs " + human_bytes(bytes) + ", and " + human_bytes(*room) + " are free",
                 .where = lock.prefix.parent_path().string(),
                 .hint = "Free some space, or choose a prefix on another filesystem."});
}

void remove_leftovers(const PrefixLock& lock) {
    if (!lock.locked) return;
    const auto& prefix = lock.prefix;
    const auto start = assembly_name(prefix);
    const auto host = this_host();
    for (const auto& directory : {prefix, prefix.parent_path()})
        for (const auto& name : names_in(directory)) {
            // Only leftovers of this node: many shared filesystems lock per node, so that another node's
            // build may still be running.
            if (!name.starts_with(start)) continue;
            const auto digits = name.find_first_not_of("0123456789", start.size());
            if (digits == start.size() || digits == std::string::npos || name.substr(digits) != host)
                continue;
            if (!is_left_by_us(directory / name)) continue;
            if (directory == prefix && !manifest::is_installation(prefix))
                for (const auto& begun : listed_names(prefix / name))
                    [[maybe_unused]] const auto removed = remove_tree(prefix / begun);
            [[maybe_unused]] const auto removed = remove_tree(directory / name);
        }
    if (!manifest::is_installation(prefix)) return;
    const auto manifest = manifest::read_manifest(prefix);
    const auto states = read_states(prefix);
    if (!manifest || !states) return;
    complete_current_state(prefix, *manifest);
    remove_unreferenced(prefix, *manifest, *states);
}

Result<fs::path> make_assembly(const PrefixLock& lock, CleanupProcess& cleanup) {
    const fs::path parent = lock.existed ? lock.prefix : lock.prefix.parent_path();
    // Unpredictable, so that nobody can take the name in advance in a directory like /tmp.
    std::random_device number;
    fs::path assembly = parent / (assembly_name(lock.prefix) + std::to_string(number()) + this_host());
    // The assembly becomes the prefix, so it gets the usual mode and inherits the parent's group.
    if (mkdir(assembly.c_str(), mode_of_new_directories) != 0)
        return fail_errno("cannot create a directory", assembly.string());
    cleanup.remove_tree_later(assembly);
    return assembly;
}

std::string free_image_name(const fs::path& prefix) {
    std::error_code failed;
    std::string name = "env.sqfs";
    for (int i = 1; fs::exists(fs::symlink_status(prefix / name, failed)); ++i)
        name = "env." + std::to_string(i) + ".sqfs";
    return name;
}

namespace {

/// Copies into a striped directory first: a file keeps the layout of the directory it was created in.
Result<std::string> add_striped(const fs::path& image, std::uint64_t size, const fs::path& place,
                                const std::function<void(std::uint64_t)>& progress) {
    fs::path directory = place;
    directory += ".striped";
    if (!make_striped_directory(directory, stripes_for(size), current_environment()))
        return copy_file_synced(image, place, progress);
    const auto copy = directory / "image";
    auto digest = copy_file_synced(image, copy, progress);
    std::error_code failed;
    if (digest) fs::rename(copy, place, failed);
    if (failed) digest = fail_errno("cannot rename the image", copy.string(), failed.value());
    fs::remove_all(directory, failed);
    return digest;
}

} // namespace

Status add_image(const fs::path& image, ImageIs image_is, const fs::path& assembly,
                 manifest::ImageFile& entry, const std::function<void(std::uint64_t)>& progress) {
    struct stat info {};
    if (stat(image.c_str(), &info) != 0) return fail_errno("cannot examine the image", image.string());
    const fs::path place = assembly / entry.file;
    TRY(make_directories(place.parent_path()));
    entry.size = static_cast<std::uint64_t>(info.st_size);
    entry.sha256 = TRY(filesystem_type(place) == "lustre" ? add_striped(image, entry.size, place, progress)
                       : image_is == ImageIs::of_others   ? copy_file_synced(image, place, progress)
                                                          : move_file_synced(image, place, progress));
    return {};
}

Status publish(const Publication& publication, CleanupProcess& cleanup) {
    const bool in_place = publication.lock.existed;
    TRY(in_place ? publish_in_place(publication, cleanup) : publish_by_one_rename(publication));
    std::vector<fs::path> no_longer_needed = {publication.staging};
    if (in_place) no_longer_needed.push_back(publication.assembly); // otherwise it is the prefix now
    cleanup.keep_all_but(no_longer_needed);
    return {};
}

} // namespace containerize::prefix

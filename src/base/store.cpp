#include "base/store.h"

#include "base/image_reference.h"
#include "core/entries.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/ownership.h"
#include "util/json.h"
#include "util/log.h"
#include "util/shared_directory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace containerize::base {

namespace {

using nlohmann::json;

constexpr int format = 1;
constexpr std::string_view staging_directories = ".pulling";

std::string name_of(const std::string& digest) {
    return "sha256-" + digest.substr(digest.find(':') + 1);
}

fs::path description_of(const fs::path& store, const std::string& digest) {
    return store / (name_of(digest) + ".json");
}

json to_json(const StoredImage& image) {
    return {{"format", format},
            {"references", image.references},
            {"digest", image.digest},
            {"index_digest", image.index_digest},
            {"config",
             {{"os", image.config.platform.os},
              {"architecture", image.config.platform.architecture},
              {"environment", image.config.environment},
              {"working_directory", image.config.working_directory},
              {"entrypoint", image.config.entrypoint},
              {"command", image.config.command}}}};
}

std::optional<StoredImage> read_description(const fs::path& file) {
    auto text = read_file(file, largest_config);
    if (!text) return std::nullopt;
    try {
        const auto root = parse_json(*text);
        if (root.at("format") != format) return std::nullopt;
        StoredImage image;
        image.file = fs::path(file).replace_extension(".sqfs");
        root.at("references").get_to(image.references);
        root.at("digest").get_to(image.digest);
        root.at("index_digest").get_to(image.index_digest);
        const auto& config = root.at("config");
        config.at("os").get_to(image.config.platform.os);
        config.at("architecture").get_to(image.config.platform.architecture);
        config.at("environment").get_to(image.config.environment);
        config.at("working_directory").get_to(image.config.working_directory);
        config.at("entrypoint").get_to(image.config.entrypoint);
        config.at("command").get_to(image.config.command);
        std::error_code missing;
        image.size = fs::file_size(image.file, missing);
        if (missing || !is_digest(image.digest) || file.stem() != name_of(image.digest)) return std::nullopt;
        return image;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

Status write_description(const fs::path& store, const StoredImage& image) {
    return write_file(description_of(store, image.digest),
                      to_json(image).dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

/// Gives our lock the group and the mode that fit the store, whatever the umask: whoever may open it could
/// block all others, so only those who can write to the store may.
void share_lock(const fs::path& store, const Fd& lock) {
    struct stat above {};
    struct stat info {};
    if (stat(store.c_str(), &above) != 0 || fstat(lock.get(), &info) != 0 || info.st_uid != geteuid()) return;
    const mode_t mode = (above.st_mode & S_IWGRP) != 0 && give_group(lock, above.st_gid) ? 0660 : 0600;
    if ((info.st_mode & 07777U) != mode) fchmod(lock.get(), mode);
}

/// Creates the lock under another name first: others must be able to wait for it as soon as they see it.
void create_lock(const fs::path& store, const fs::path& lock) {
    std::string name = lock.string() + "-XXXXXX";
    const Fd file(mkostemp(name.data(), O_CLOEXEC));
    if (!file) return; // opening the lock will tell why
    share_lock(store, file);
    // Another process may be faster, and where files have no second name, opening the lock creates it.
    [[maybe_unused]] const int linked = link(name.c_str(), lock.c_str());
    unlink(name.c_str());
}

/// The lock is for the descriptions, which are read, changed and written again.
Result<FileLock> lock_store(const fs::path& store) {
    const auto path = store / ".lock";
    if (!quiet::exists(path)) create_lock(store, path);
    auto lock = wait_for_lock(path, 0600);
    if (lock) share_lock(store, lock->file);
    return lock;
}

/// Removes `reference` from all images but `except`. The store must be locked.
Status take_reference(const fs::path& store, const std::string& reference, const std::string& except) {
    for (auto& other : list_images(store)) {
        if (other.digest == except || std::erase(other.references, reference) == 0) continue;
        TRY(write_description(store, other));
    }
    return {};
}

/// Removes the staging directories that no process is in.
void sweep_staging_directories(const fs::path& directory, const std::string& except) {
    std::error_code ignored;
    for (const auto& entry : entries_in(directory, ignored)) {
        if (entry.path().filename() == except || !entry.is_directory(ignored)) continue;
        const auto lock_file = entry.path().string() + ".lock";
        const auto lock = try_lock(lock_file);
        if (!lock || lock->state != LockState::held) continue;
        [[maybe_unused]] const auto removed = remove_tree(entry.path());
        fs::remove(lock_file, ignored);
    }
}

/// Why the files must not be used; null if they may be. Images are found by name and not verified again, so
/// their owner counts.
const char* why_not_of_store(const struct stat& store, const fs::path& description, const fs::path& image) {
    for (const auto* path : {&description, &image}) {
        struct stat info {};
        if (stat(path->c_str(), &info) != 0) return "it was removed";
        if (const char* why = why_foreign(store, info, store.st_uid)) return why;
    }
    return nullptr;
}

} // namespace

Result<fs::path> store_directory(const Environment& environment, const fs::path& configured) {
    fs::path directory = configured;
    if (directory.empty()) directory = variable(environment, "CONTAINERIZE_BASES");
    if (const auto data = variable(environment, "XDG_DATA_HOME"); directory.empty() && !data.empty())
        directory = fs::path(data) / "containerize/bases";
    if (const auto home = variable(environment, "HOME"); directory.empty() && !home.empty())
        directory = fs::path(home) / ".local/share/containerize/bases";
    if (directory.is_absolute()) return directory;
    return fail_input("there is no directory for base images",
                      directory.empty() ? "HOME is not set"
                                        : "'" + directory.string() + "' is not an absolute path",
                      {}, "Set CONTAINERIZE_BASES, or `bases` in the configuration, to an absolute path.");
}

std::vector<StoredImage> list_images(const fs::path& store) {
    std::vector<StoredImage> images;
    std::error_code missing;
    struct stat directory {};
    if (stat(store.c_str(), &directory) != 0) return images;
    for (const auto& entry : entries_in(store, missing)) {
        if (entry.path().extension() != ".json") continue;
        auto image = read_description(entry.path());
        if (!image)
            log::detail(entry.path().string() + " describes an image that does not exist");
        else if (const char* why = why_not_of_store(directory, entry.path(), image->file))
            log::warn(image->file.string() + " is not used: " + why);
        else
            images.push_back(std::move(*image));
    }
    std::ranges::sort(images, {}, [](const auto& image) { return std::tie(image.references, image.digest); });
    return images;
}

std::optional<StoredImage> find_image(const std::vector<fs::path>& stores, const std::string& name) {
    for (const auto& store : stores) {
        auto images = list_images(store);
        const auto found = std::ranges::find_if(images, [&name](const StoredImage& image) {
            return image.digest == name || (!name.empty() && image.index_digest == name) ||
                   std::ranges::find(image.references, name) != image.references.end();
        });
        if (found != images.end()) return std::move(*found);
    }
    return std::nullopt;
}

Result<StoredImage> add_image(const fs::path& store, StoredImage image) {
    const auto lock = TRY(lock_store(store));
    TRY(sync_file(image.file));
    const auto place = store / (name_of(image.digest) + ".sqfs");
    if (rename(image.file.c_str(), place.c_str()) != 0)
        return fail_errno("cannot move the image into the store", place.string());
    image.file = place;
    std::error_code ignored;
    image.size = fs::file_size(place, ignored);
    TRY(sync_directory(store));
    TRY(write_description(store, image));
    for (const auto& reference : image.references)
        TRY(take_reference(store, reference, image.digest));
    return image;
}

Status add_reference(const fs::path& store, const StoredImage& image, const std::string& reference) {
    if (std::ranges::find(image.references, reference) != image.references.end()) return {};
    const auto lock = TRY(lock_store(store));
    auto now = read_description(description_of(store, image.digest));
    if (!now) return {};
    now->references.push_back(reference);
    std::ranges::sort(now->references);
    TRY(write_description(store, *now));
    return take_reference(store, reference, image.digest);
}

Status remove_image(const fs::path& store, const StoredImage& image) {
    const auto lock = TRY(lock_store(store));
    // The description first: a file without one is no image.
    for (const auto& file : {description_of(store, image.digest), image.file})
        if (std::error_code failed; !fs::remove(file, failed) && failed)
            return fail({.what = "cannot remove the image", .why = failed.message(), .where = file.string()});
    return {};
}

Result<StagingDirectory> StagingDirectory::enter(const fs::path& store, const std::string& digest) {
    const auto directory = store / staging_directories;
    if (auto why = make_shared_directory(directory); !why.empty())
        return fail({.what = "cannot use the store of base images",
                     .why = std::move(why),
                     .where = directory.string(),
                     .hint = "Set CONTAINERIZE_BASES to another directory."});
    // Users who share a store cannot write to what others have left.
    const auto name = std::to_string(geteuid()) + "-" + name_of(digest);
    sweep_staging_directories(directory, name);
    auto path = directory / name;
    auto lock = wait_for_lock(path.string() + ".lock");
    if (!lock) {
        if (!interrupted()) lock.error().hint = "Set CONTAINERIZE_BASES to another directory.";
        return fail(std::move(lock.error()));
    }
    if (auto why = make_private_directory(path); !why.empty())
        return fail({.what = "cannot use the directory", .why = std::move(why), .where = path.string()});
    return StagingDirectory(std::move(path), std::move(*lock));
}

void StagingDirectory::clean() {
    std::error_code ignored;
    if (auto removed = remove_tree(path_); !removed) log::detail(to_string(removed.error()));
    fs::remove(path_.string() + ".lock", ignored);
}

} // namespace containerize::base

#include "root/root.h"

#include "core/fd.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/variables.h"
#include "image/layers_view.h"
#include "image/writer.h"
#include "mounts/mount_point.h"
#include "root/root_plan.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace containerize::root {

namespace {

using image::TreeView;

/// Opens `target` for mount(2), with links resolved inside the tree at `root` (empty: the current root). No
/// descriptor if it is missing. (openat2 does that from Linux 5.6 on; here nobody else changes links.)
Fd open_in_root(const std::string& root, const std::string& target) {
    const auto resolved = image::DirectoryView(root.empty() ? "/" : root).resolve(target);
    if (!resolved) return {};
    return Fd(open((root + *resolved).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

/// The same for `target` itself; no descriptor if it is a link.
Fd open_itself_in_root(const std::string& root, const std::string& target) {
    const image::DirectoryView view(root.empty() ? "/" : root);
    const auto place = view.resolve_parent(target);
    if (!place || view.own_kind(target) == TreeView::Kind::link) return {};
    return Fd(open((root + *place).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

Status remount_read_only(const std::string& path) {
    struct statvfs info {};
    unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY;
    // The kernel refuses a remount that drops restrictions of the original mount.
    if (statvfs(path.c_str(), &info) == 0)
        flags |= info.f_flag & (ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_NOATIME | ST_NODIRATIME | ST_RELATIME);
    return mount(nullptr, path.c_str(), nullptr, flags, nullptr) == 0
               ? Status()
               : fail_errno("cannot make a bind read-only", path);
}

/// Makes the mount and all mounts in it read-only.
Status make_read_only(const Fd& mounted) {
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_RDONLY;
    if (syscall(SYS_mount_setattr, mounted.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
                sizeof attributes) == 0)
        return {};
    TRY(remount_read_only(path_of(mounted)));
    // Before Linux 5.12: one by one, by path. What cannot be reached by its path cannot be written to either.
    std::error_code failed;
    const auto place = fs::read_symlink(path_of(mounted), failed);
    if (failed) return fail_errno("cannot make a bind read-only", path_of(mounted), failed.value());
    for (const auto& path : mount_points_below(place))
        if (path != place) std::ignore = remount_read_only(path);
    return {};
}

std::unexpected<Error> no_base(const manifest::Base& base, int error_number) {
    auto error = fail_errno("cannot open the base", base.file.string(), error_number);
    auto& hint = error.error().hint;
    if (base.digest.empty()) {
        hint = "If the base was moved, move it back, or build the installation again with another --base.";
    } else if (base.reference.starts_with("docker://")) {
        // A tag may have another image by now.
        const auto named = base.reference.find('@') != std::string::npos;
        hint = "If the base was removed, `containerize base pull " + base.reference +
               (named ? "" : "@" + base.digest) + "` restores it.";
    } else {
        hint = "If the base was removed, `containerize base pull " + base.reference +
               "` restores it, provided that the source is still the image " + base.digest + ".";
    }
    return error;
}

class Assembly {
public:
    Assembly(const RootRequest& request, const fs::path& work)
        : request_(request), root_(request.base.is_host() ? std::string() : (work / "root").string()),
          own_((work / "own").string()), work_(work), plan_(request, own_) {}

    Result<Root> run() {
        if (!request_.base.is_host()) TRY(make_work());
        TRY(plan_.make());
        TRY(mount_rootfs());
        for (const auto& mount : plan_.mounts()) {
            auto done = carry_out(mount);
            if (!done && !mount.optional) return fail(std::move(done.error()));
            if (!done) made_.notes.push_back("skipped: " + to_string(done.error()));
        }
        if (request_.base.isolate) link_descriptors();
        if (!request_.base.is_host()) TRY(mounts::change_root(root_));
        // The bind of /tmp has copied this mount, too.
        if (!request_.base.is_host()) umount2(work_.c_str(), MNT_DETACH);
        const auto own = environment_of(request_.base);
        made_.environment.insert(made_.environment.begin(), own.begin(), own.end());
        made_.notes.insert(made_.notes.end(), plan_.notes().begin(), plan_.notes().end());
        return std::move(made_);
    }

private:
    /// Mounts a tmpfs for mount points and for files that we write.
    Status make_work() {
        if (mount("containerize", work_.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=64m") != 0)
            return fail_errno("cannot mount a directory in memory", work_.string());
        std::error_code failed;
        fs::create_directory(root_, failed);
        if (!failed) fs::create_directories(own_ + "/etc", failed);
        if (failed) return fail_errno("cannot create a directory", work_.string(), failed.value());
        return write_names();
    }

    // Writes passwd and group: the host's, with the caller's own entries added if they are missing.
    Status write_names() {
        const auto content = [](const char* path) { return read_file(path).value_or(std::string()); };
        const auto with_id = [](std::string text, const std::string& id, const std::string& line) {
            for (const auto entry : split(text, '\n'))
                if (const auto fields = split(entry, ':'); fields.size() > 3 && fields[2] == id) return text;
            if (!text.empty() && !text.ends_with('\n')) text += '\n';
            return text + line + "\n";
        };
        const auto uid = std::to_string(geteuid());
        const auto gid = std::to_string(getegid());
        const auto plain = [](const std::string& text, const std::string& otherwise) {
            return text.empty() || text.find_first_of(":\n") != std::string::npos ? otherwise : text;
        };
        const std::string name = plain(request_.user, "user" + uid);
        std::string user = name;
        user.append(":x:").append(uid).append(":").append(gid).append("::");
        user.append(plain(request_.home, "/")).append(":").append(plain(request_.shell, "/bin/sh"));
        std::string group = name;
        group.append(":x:").append(gid).append(":");
        TRY(write_file(own_ + "/etc/passwd", with_id(content("/etc/passwd"), uid, user)));
        return write_file(own_ + "/etc/group", with_id(content("/etc/group"), gid, group));
    }

    Status mount_rootfs() {
        if (request_.base.is_host()) return mount_host();
        struct stat info {};
        if (stat(request_.base.file.c_str(), &info) != 0) return no_base(request_.base, errno);
        return S_ISDIR(info.st_mode) ? mount_directory() : mount_image();
    }

    static std::unexpected<Error> no_target(const std::string& target) {
        return fail({.what = "the target of the bind does not exist",
                     .where = target,
                     .hint = "It is not created in a directory of the host. Create it yourself, or bind to "
                             "another path."});
    }

    /// Unlike for an installation's original path, it does not matter who owns the directories: the user or
    /// the installation's maker has named the bind's target, and without the bind, what is there is up to its
    /// owner as well. The same holds for targets that exist.
    Status mount_host() {
        const auto missing = missing_in(image::DirectoryView("/"));
        for (const auto& one : missing) {
            // Programs may write there, and a cover would be read-only.
            if (access(mounts::nearest_directory(one.path).c_str(), W_OK) == 0) return no_target(one.path);
        }
        return mounts::cover_missing({}, missing);
    }

    Status mount_directory() {
        const image::DirectoryView view(request_.base.file);
        TRY(inject(view));
        if (mount(request_.base.file.c_str(), root_.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
            return fail_errno("cannot bind the base's directory", request_.base.file.string());
        TRY(make_read_only(Fd(open(root_.c_str(), O_PATH | O_CLOEXEC))));
        if (!plan_.links().empty())
            plan_.notes().emplace_back(
                "the host's top-level links are not visible, because the base is a directory");
        return mounts::cover_missing(root_, missing_in(view));
    }

    Status mount_image() {
        auto files = TRY(open_base(request_.base));
        auto layers = TRY(image::Layers::open(std::move(files)));
        const image::LayersView view(*layers);
        TRY(inject(view));
        const fs::path layer = work_ / "mount-points.sqfs";
        TRY(write_layer(layer, view));
        files = TRY(open_base(request_.base));
        files.push_back({.file = Fd(open(layer.c_str(), O_RDONLY | O_CLOEXEC)), .path = layer});
        made_.base = TRY(mounts::ServedMount::mount(std::move(files), root_, mounts::ServedMount::Use::root));
        return {};
    }

    Status inject(const TreeView& view) {
        if (!request_.inject) return {};
        auto injection = request_.inject(view);
        for (const auto& bind : injection.binds)
            TRY(plan_.add_bind(bind, true));
        for (const auto& [path, target] : injection.links) {
            const auto inside = own_path(path);
            std::error_code failed;
            if (!inside.empty()) fs::create_directories(inside.parent_path(), failed);
            if (!inside.empty() && !failed) fs::create_symlink(target, inside, failed);
            if (inside.empty() || failed) made_.notes.push_back("cannot create a link: " + path);
        }
        made_.environment = std::move(injection.environment);
        made_.notes = std::move(injection.notes);
        made_.warnings = std::move(injection.warnings);
        return {};
    }

    /// Where a path in `own_directory` is until the root is changed; empty for other paths.
    [[nodiscard]] fs::path own_path(const std::string& path) const {
        if (!is_below(path, own_directory) || !stays_below(path.substr(1))) return {};
        return own_ + path.substr(std::strlen(own_directory));
    }

    /// The targets that the base's own tree lacks; others are in what is mounted on it.
    std::vector<mounts::MissingPath> missing_in(const TreeView& view) {
        std::vector<mounts::MissingPath> missing;
        std::vector<std::string> mounted;
        for (const auto& mount : plan_.mounts()) {
            if (const auto inside = own_path(mount.target); !inside.empty() && inside != own_) {
                make_own(inside, mount.directory);
                continue;
            }
            const std::string target =
                (mount.takes_name ? view.resolve_parent(mount.target) : view.resolve_missing(mount.target))
                    .value_or("");
            const bool on_a_mount =
                std::ranges::any_of(mounted, [&](const std::string& one) { return is_below(target, one); });
            if (mount.directory) mounted.push_back(target);
            if (on_a_mount || target.empty()) continue;
            const auto kind = mount.takes_name ? view.own_kind(target) : view.kind(target);
            const bool fits = mount.directory ? kind == TreeView::Kind::directory
                                              : kind == TreeView::Kind::file || kind == TreeView::Kind::other;
            if (!fits) missing.push_back({.path = target, .directory = mount.directory});
        }
        return missing;
    }

    static void make_own(const fs::path& path, bool directory) {
        std::error_code ignored; // the mount reports what is wrong
        fs::create_directories(directory ? path : path.parent_path(), ignored);
        if (!directory) mknod(path.c_str(), S_IFREG | 0644, 0);
    }

    // Writes what the base lacks to one more image over it: nothing is copied, and no kernel overlay is
    // needed.
    Status write_layer(const fs::path& file, const TreeView& view) {
        auto writer = TRY(
            image::Writer::create(file, {.compression = {.compressor = image::Compressor::none, .level = 0},
                                         .block_size = 4096,
                                         .memory = 1U << 20U}));
        for (const auto& [path, directory] : missing_in(view)) {
            const auto name = path.substr(1);
            if (writer.contains(name)) continue;
            if (directory) {
                TRY(writer.add_directory(name, {.mode = 0755}));
            } else {
                TRY(writer.begin_file(name, {.mode = 0644}));
                TRY(writer.end_file());
            }
        }
        for (const auto& [path, target] : plan_.links())
            if (view.own_kind(path) == TreeView::Kind::missing)
                TRY(writer.add_symlink(path.substr(1), target, {.mode = 0777}));
        TRY(writer.finish());
        return {};
    }

    Status carry_out(const RootMount& wanted) {
        const Fd target = wanted.takes_name ? open_itself_in_root(root_, wanted.target)
                                            : open_in_root(root_, wanted.target);
        // Inside a new tmpfs, the target can be created now.
        if (!target && (wanted.in_memory() || is_in_memory(wanted.target)))
            return carry_out_in_memory(wanted);
        if (!target) return no_target(wanted.target);
        return mount_on(wanted, path_of(target));
    }

    // The links that every /dev has.
    void link_descriptors() const {
        std::error_code ignored;
        for (const auto& [name, target] :
             {std::pair{"fd", "/proc/self/fd"}, std::pair{"stdin", "/proc/self/fd/0"},
              std::pair{"stdout", "/proc/self/fd/1"}, std::pair{"stderr", "/proc/self/fd/2"}})
            fs::create_symlink(target, root_ + "/dev/" + name, ignored);
    }

    [[nodiscard]] bool is_in_memory(const std::string& path) const {
        return std::ranges::any_of(plan_.mounts(), [&](const RootMount& mount) {
            return mount.in_memory() && mount.target != path && is_below(path, mount.target);
        });
    }

    Status carry_out_in_memory(const RootMount& wanted) {
        const auto place = image::DirectoryView(root_).resolve_missing(wanted.target);
        if (!place) return no_target(wanted.target);
        const std::string path = root_ + *place;
        make_own(path, wanted.directory);
        return mount_on(wanted, path);
    }

    Status mount_on(const RootMount& wanted, const std::string& path) {
        if (wanted.in_memory()) {
            // In a world-writable directory, the kernel refuses O_CREAT on device files of other users.
            const char* mode = wanted.target == "/dev" ? "mode=755" : "mode=1777";
            if (mount("containerize", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, mode) != 0)
                return fail_errno("cannot mount a directory in memory", wanted.target);
            return {};
        }
        if (mount(wanted.source.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
            return fail_errno("cannot bind " + wanted.source, wanted.target);
        if (!wanted.read_only) return {};
        return make_read_only(open_in_root(root_, wanted.target));
    }

    const RootRequest& request_;
    std::string root_; ///< where the new root is assembled; empty if the old one stays
    std::string own_;  ///< becomes `own_directory`
    fs::path work_;
    RootPlan plan_;
    Root made_;
};

} // namespace

Result<Root> enter_root(const RootRequest& request, const fs::path& work) {
    auto made = Assembly(request, work).run();
    if (!made) umount2(work.c_str(), MNT_DETACH);
    return made;
}

Result<std::vector<image::Layers::ImageFile>> open_base(const manifest::Base& base) {
    std::vector<image::Layers::ImageFile> files;
    files.push_back({.file = Fd(open(base.file.c_str(), O_RDONLY | O_CLOEXEC)),
                     .path = base.file,
                     .offset = base.offset});
    if (!files.back().file) return no_base(base, errno);
    return files;
}

Result<std::unique_ptr<image::TreeView>> open_tree(const manifest::Base& base) {
    std::error_code failed;
    if (base.is_host() || fs::is_directory(base.file, failed))
        return std::make_unique<image::DirectoryView>(base.is_host() ? "/" : base.file);
    auto files = TRY(root::open_base(base));
    auto layers = TRY(image::Layers::open(std::move(files)));
    return std::make_unique<image::LayersView>(std::move(layers));
}

std::vector<launch::EnvironmentChange> environment_of(const manifest::Base& base) {
    if (base.is_host()) return {};
    // The base's programs must not load the host's libraries.
    std::vector<launch::EnvironmentChange> changes = {
        {launch::EnvironmentChange::Kind::unset, "LD_LIBRARY_PATH", {}},
        {launch::EnvironmentChange::Kind::unset, "LD_PRELOAD", {}}};
    changes.insert(changes.end(), base.environment.begin(), base.environment.end());
    return changes;
}

std::string root_name(const manifest::Manifest& manifest) {
    if (manifest.settings.base.is_host() && manifest.settings.binds.empty()) return {};
    std::string text = manifest.settings.base.reference + '\0' + manifest.settings.base.digest + '\0' +
                       manifest.settings.base.file.string() + '\0' +
                       std::to_string(manifest.settings.base.offset) + '\0' + manifest.settings.gpu;
    for (const auto& bind : manifest.settings.binds)
        text += '\0' + to_text(bind);
    for (const auto& library : manifest.settings.host_libraries)
        text += '\0' + library;
    const auto kind = manifest.settings.base.is_host() ? launch::host_root
                      : manifest.settings.base.isolate ? launch::isolated_root
                                                       : launch::image_root;
    return std::string(kind) + launch::short_hash(text);
}

std::string wanted_gpu(const manifest::Manifest& manifest) {
    const auto asked = variable("CONTAINERIZE_GPU");
    return asked.empty() ? manifest.settings.gpu : asked;
}

gpu::Injection find_drivers(const image::TreeView& root, const manifest::Manifest& manifest,
                            const std::string& prefix) {
    const auto policy = gpu::parse_policy(manifest.settings.gpu);
    std::map<std::string, std::string> variables;
    for (const auto& variable : launch::root_variables)
        if (const char* value = value_of(variable.name)) variables[variable.name.name()] = value;
    const auto layers = manifest::open_layers(manifest, prefix);
    std::optional<image::LayersView> environment;
    if (layers) environment.emplace(**layers);
    auto found = gpu::find({.policy = policy.value_or(gpu::vendors),
                            .libraries = manifest.settings.host_libraries,
                            .has_devices = !manifest.settings.base.isolate,
                            .host_root = "/",
                            .variables = std::move(variables),
                            .image = root,
                            .environment = environment ? &*environment : nullptr,
                            .prefix = prefix});
    if (!policy) found.warnings.push_back(to_string(policy.error()));
    return found;
}

Result<std::vector<manifest::Bind>> binds_of_environment() {
    std::vector<manifest::Bind> binds;
    for (const auto& variable : launch::root_variables) {
        const char* value = value_of(variable.name);
        if (!variable.binds || value == nullptr || variable.for_images_only) continue;
        auto parsed = manifest::parse_binds(value);
        if (!parsed) {
            parsed.error().hint += std::string("\nThe bind is in the variable ") + variable.name.name() + ".";
            return fail(std::move(parsed.error()));
        }
        binds.insert(binds.end(), parsed->begin(), parsed->end());
    }
    return binds;
}

std::vector<manifest::Bind> binds_of_other_tools() {
    std::vector<manifest::Bind> binds;
    for (const auto& variable : launch::root_variables) {
        const char* value = value_of(variable.name);
        if (!variable.binds || value == nullptr || !variable.for_images_only) continue;
        for (const auto entry : split(value, ','))
            if (auto bind = manifest::parse_bind(entry)) binds.push_back(std::move(*bind));
    }
    return binds;
}

} // namespace containerize::root

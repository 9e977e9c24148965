#include "root/root_plan.h"

#include "core/filesystem.h"

#include <array>
#include <cerrno>

#include <sys/stat.h>

namespace containerize::root {

namespace {

/// Settings of the host that a base cannot know.
constexpr std::array<const char*, 3> host_settings = {"/etc/resolv.conf", "/etc/hosts", "/etc/localtime"};
/// What programs expect in an isolated /dev, and what the session itself needs there.
constexpr std::array<const char*, 9> usual_devices = {"/dev/null",   "/dev/zero",    "/dev/full",
                                                      "/dev/random", "/dev/urandom", "/dev/tty",
                                                      "/dev/pts",    "/dev/ptmx",    "/dev/fuse"};

bool exists(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0;
}

bool is_directory(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

RootMount mount_of(const std::string& source, const std::string& target) {
    return {.source = source, .target = target, .directory = is_directory(source)};
}

RootMount memory_at(const std::string& target) {
    return {.target = target, .takes_name = true};
}

} // namespace

Status RootPlan::make() {
    if (!request_.base.is_host()) {
        auto own = mount_of(own_, own_directory);
        own.read_only = true;
        mounts_.push_back(std::move(own));
        if (request_.base.isolate)
            add_isolated();
        else
            add_host();
        for (const auto* settings : host_settings)
            add_settings(settings, settings);
        for (const std::string name : {"passwd", "group"})
            add_settings(own_ + "/etc/" + name, "/etc/" + name);
    }
    for (const auto& path : request_.needed)
        if (!is_seen(path)) add_if_there(path, path);
    for (const auto& bind : request_.binds)
        TRY(add_bind(bind));
    for (const auto& bind : request_.offered)
        TRY(add_bind(bind, true));
    return {};
}

Status RootPlan::add_bind(const manifest::Bind& bind, bool optional) {
    if (!exists(bind.source)) {
        if (bind.required) return fail_errno("the source of a required bind is missing", bind.source, ENOENT);
        notes_.push_back("not bound, because it does not exist: " + bind.source);
        return {};
    }
    // Already visible as wanted, because a directory above it is.
    if (bind.source == bind.target && !bind.read_only && is_seen(bind.target)) return {};
    auto mount = mount_of(bind.source, bind.target);
    mount.read_only = bind.read_only;
    mount.optional = optional;
    mounts_.push_back(std::move(mount));
    return {};
}

bool RootPlan::is_seen(std::string_view path) const {
    // Later ones cover earlier ones.
    for (auto mount = mounts_.rbegin(); mount != mounts_.rend(); ++mount)
        if (is_below(path, mount->target)) return mount->source == mount->target && !mount->read_only;
    return request_.base.is_host();
}

void RootPlan::add_if_there(const std::string& source, const std::string& target) {
    if (exists(source)) mounts_.push_back(mount_of(source, target));
}

// Hides the base's own file, which may be a link to a file that others name, too, or to nowhere.
void RootPlan::add_settings(const std::string& source, const std::string& target) {
    if (!exists(source)) return;
    auto mount = mount_of(source, target);
    mount.optional = mount.takes_name = true;
    mounts_.push_back(std::move(mount));
}

void RootPlan::add_host() {
    for (const auto& name : image::DirectoryView("/").list("/")) {
        if (launch::is_of_base(name) || name.starts_with('.')) continue;
        const std::string path = "/" + name;
        std::error_code no_link;
        if (const auto target = fs::read_symlink(path, no_link); !no_link)
            links_.emplace_back(path, target.string());
        else if (is_directory(path))
            add_if_there(path, path);
    }
    add_if_there("/var/tmp", "/var/tmp");
    if (!request_.home.empty() && is_directory(request_.home) && !is_seen(request_.home))
        add_if_there(request_.home, request_.home);
}

void RootPlan::add_isolated() {
    for (const char* path : {"/proc", "/sys"})
        add_if_there(path, path);
    std::vector<std::string> empty = {"/dev", "/tmp", "/var/tmp", "/run"};
    if (!request_.home.empty() && request_.home != "/") empty.push_back(request_.home);
    for (const auto& path : empty)
        mounts_.push_back(memory_at(path));
    for (const char* device : usual_devices)
        add_if_there(device, device);
    mounts_.push_back(memory_at("/dev/shm"));
}

} // namespace containerize::root

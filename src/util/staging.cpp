#include "util/filesystem.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

namespace containerize {

namespace {

std::string staging_prefix() {
    return "containerize-build-" + std::to_string(geteuid()) + "-";
}

fs::path nearest_existing(fs::path path) {
    std::error_code ignored;
    while (!path.empty() && !fs::exists(path, ignored) && path != path.root_path())
        path = path.parent_path();
    return path.empty() ? fs::path(".") : path;
}

// A FUSE filesystem's own name ("sshfs", "glusterfs") stands in the mount table only.
std::string fuse_type(const fs::path& path) {
    struct stat info {};
    if (stat(path.c_str(), &info) != 0) return "fuse";
    const std::string device = std::to_string(major(info.st_dev)) + ":" + std::to_string(minor(info.st_dev));
    std::ifstream table("/proc/self/mountinfo");
    for (std::string line; std::getline(table, line);) {
        std::istringstream fields(line);
        std::string id, parent, number, skipped, type;
        fields >> id >> parent >> number;
        if (number != device) continue;
        while (fields >> skipped && skipped != "-") {
        }
        if (fields >> type) return type;
    }
    return "fuse";
}

std::vector<fs::path> staging_candidates() {
    std::vector<fs::path> candidates;
    if (const char* directory = std::getenv("TMPDIR"); directory != nullptr && directory[0] == '/')
        candidates.emplace_back(directory);
    candidates.emplace_back("/tmp");
    candidates.emplace_back("/var/tmp");
    candidates.emplace_back("/dev/shm");
    return candidates;
}

} // namespace

std::string filesystem_type(const fs::path& path) {
    const fs::path existing = nearest_existing(path);
    struct statfs info {};
    if (statfs(existing.c_str(), &info) != 0) return "unknown";
    static const std::map<unsigned long, const char*> names = {
        {0x0BD00BD0, "lustre"}, {0x6969, "nfs"},         {0x47504653, "gpfs"},    {0x19830326, "beegfs"},
        {0xFF534D42, "cifs"},   {0xFE534D42, "smb2"},    {0x00C36400, "ceph"},    {0x5346414F, "afs"},
        {0xAAD7AAEA, "panfs"},  {0x01021997, "9p"},      {0xEF53, "ext4"},        {0x58465342, "xfs"},
        {0x9123683E, "btrfs"},  {0x01021994, "tmpfs"},   {0x794C7630, "overlay"}, {0x2FC12FC1, "zfs"},
        {0x858458F6, "ramfs"},  {0x73717368, "squashfs"}};
    const auto magic = static_cast<unsigned long>(info.f_type) & 0xFFFFFFFFUL;
    if (magic == 0x65735546) return fuse_type(existing);
    const auto found = names.find(magic);
    return found == names.end() ? "unknown" : found->second;
}

bool is_network_filesystem(std::string_view type) {
    static constexpr std::array<std::string_view, 10> network = {"lustre", "nfs",  "gpfs", "beegfs", "cifs",
                                                                 "smb2",   "ceph", "afs",  "panfs",  "9p"};
    for (const auto one : network)
        if (type == one) return true;
    // Of FUSE filesystems (sshfs, glusterfs, weka) hardly any is a local disk.
    return type.starts_with("fuse");
}

Staging::Staging(fs::path path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

Result<Staging> Staging::create(const fs::path& parent) {
    fs::path place = parent;
    if (place.empty()) {
        const auto candidates = staging_candidates();
        place = candidates.front();
        for (const auto& candidate : candidates)
            if (access(candidate.c_str(), W_OK | X_OK) == 0 &&
                !is_network_filesystem(filesystem_type(candidate))) {
                place = candidate;
                break;
            }
    }
    std::string name = (place / (staging_prefix() + "XXXXXX")).string();
    if (mkdtemp(name.data()) == nullptr) {
        auto error = fail_errno("cannot make a staging directory in", place.string());
        error.error().hint = "Name a node-local directory that you can write with --tmpdir.";
        return error;
    }
    Fd lock(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!lock || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        rmdir(name.c_str());
        return fail_errno("cannot lock the staging directory", name);
    }
    return Staging(name, std::move(lock));
}

Staging::Staging(Staging&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)), kept_(other.kept_) {}

Staging& Staging::operator=(Staging&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(lock_, other.lock_);
    std::swap(kept_, other.kept_);
    return *this;
}

Staging::~Staging() {
    if (!path_.empty() && !kept_) [[maybe_unused]]
        const auto removed = remove_tree(path_); // what cannot be removed now, the next build tries again
}

void sweep_staging(const fs::path& parent) {
    std::vector<fs::path> places = parent.empty() ? staging_candidates() : std::vector<fs::path>{parent};
    for (const auto& place : places) {
        std::error_code failed;
        for (const auto& entry : fs::directory_iterator(place, failed)) {
            if (!entry.path().filename().string().starts_with(staging_prefix())) continue;
            const Fd directory(open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
            struct stat info {};
            if (!directory || fstat(directory.get(), &info) != 0 || info.st_uid != geteuid()) continue;
            // A lock means that its build is alive.
            if (flock(directory.get(), LOCK_EX | LOCK_NB) == 0) [[maybe_unused]]
                const auto removed = remove_tree(entry.path());
        }
    }
}

} // namespace containerize

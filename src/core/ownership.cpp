#include "core/ownership.h"

#include <array>
#include <cerrno>
#include <climits>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/xattr.h>

namespace containerize {

namespace {

constexpr const char* of_another = "it belongs to another user";
constexpr const char* open_to_all = "everybody can write to it";
constexpr const char* open_to_group = "its group can write to it";
/// The limit of the kernel.
constexpr int most_links = 40;

/// Whether only the owner is in the group: most systems make each user a group of the same number. Not so
/// with an access list, whose effect on others is shown by the group's bits.
bool is_private_group(const struct stat& info, const std::string& path) {
    return info.st_uid != 0 && info.st_gid == info.st_uid &&
           lgetxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) <= 0;
}

/// Who may write to it besides the owner; null if nobody may.
const char* open_to(const struct stat& info, const std::string& path) {
    if ((info.st_mode & S_IWOTH) != 0) return open_to_all;
    if ((info.st_mode & S_IWGRP) != 0 && !is_private_group(info, path)) return open_to_group;
    return nullptr;
}

/// Whether `path` is `directory`, or below it.
bool is_above(std::string_view directory, std::string_view path) {
    return path == directory || directory == "/" ||
           (path.starts_with(directory) && path.substr(directory.size()).starts_with('/'));
}

class Walk {
public:
    Walk(std::string path, const OwnershipRules& rules) : rest_(std::move(path)), rules_(rules) {}

    std::optional<Foreign> run() {
        for (struct stat info{}; rules_.look(here_.c_str(), &info) == 0;) {
            if (info.st_uid == unknown_owner)
                return Foreign{.path = here_, .why = "its owner cannot be determined", .unknown = true};
            if (!root_) root_ = info.st_uid;
            const bool is_link = S_ISLNK(info.st_mode);
            const char* why = is_link ? why_foreign_link(info) : why_foreign_here(info);
            if (why != nullptr) return Foreign{.path = here_, .why = why};
            if (is_link ? !follow() : !go_on()) return std::nullopt;
        }
        // In a sticky directory, anybody may create what is missing.
        if (errno == ENOENT && sticky_ != nullptr && !rules_.may_be_missing)
            return Foreign{.path = parent_of(here_), .why = sticky_};
        return std::nullopt;
    }

private:
    /// A sticky directory may hold anybody's links, so their owner counts. Their mode does not.
    [[nodiscard]] const char* why_foreign_link(const struct stat& info) const {
        return is_own(info) ? nullptr : of_another;
    }

    /// Where root is not mapped, root's files and those of other users have the same owner, nobody. Anybody
    /// may then have made what is in a sticky directory.
    [[nodiscard]] bool is_own(const struct stat& info) const {
        return is_of(info, rules_.owner) || (info.st_uid == root_ && sticky_ == nullptr);
    }

    const char* why_foreign_here(const struct stat& info) {
        const bool own = is_own(info);
        sticky_ = nullptr;
        const auto next = next_path();
        const char* open = open_to(info, here_);
        const bool sticky = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0 && !next.empty();
        if (!rules_.beside.empty() && is_above(here_, rules_.beside)) {
            // Whoever may write here decides both, unless the sticky bit protects each entry.
            const bool apart = sticky && open != nullptr && !is_above(next, rules_.beside);
            if (!apart) return nullptr;
        } else if (!own) {
            return of_another;
        }
        const bool trusts_group = rules_.trusts_groups && !rules_.must_stay && is_given_to_group(info, open);
        if (open == nullptr || trusts_group) return nullptr;
        if (!sticky || rules_.must_stay) return open;
        sticky_ = open;
        return nullptr;
    }

    /// A directory that root has given to a group, for a project, say; or a file in a directory of root's.
    [[nodiscard]] bool is_given_to_group(const struct stat& info, const char* open) const {
        if (open != open_to_group) return false;
        if (S_ISDIR(info.st_mode)) return info.st_uid == root_;
        struct stat directory {};
        return rules_.look(parent_of(here_).c_str(), &directory) == 0 && directory.st_uid == root_;
    }

    /// The next path on the way; empty at the end.
    [[nodiscard]] std::string next_path() const {
        const auto start = rest_.find_first_not_of('/');
        if (start == std::string::npos) return {};
        const auto name = rest_.substr(start, rest_.find('/', start) - start);
        if (name == ".") return here_;
        if (name == "..") return parent_of(here_);
        return (here_ == "/" ? "" : here_) + "/" + name;
    }

    bool go_on() {
        auto next = next_path();
        if (next.empty()) return false;
        here_ = std::move(next);
        rest_.erase(0, rest_.find('/', rest_.find_first_not_of('/')));
        return true;
    }

    bool follow() {
        std::array<char, PATH_MAX> target;
        const auto size = readlink(here_.c_str(), target.data(), target.size());
        if (size <= 0 || ++links_ > most_links) return false;
        const std::string to(target.data(), static_cast<std::size_t>(size));
        here_ = to.starts_with('/') ? "/" : parent_of(here_);
        sticky_ = nullptr;
        rest_.insert(0, to + "/");
        return true;
    }

    std::string here_ = "/", rest_;
    const OwnershipRules& rules_;
    std::optional<uid_t> root_; ///< the owner of `/`: in some user namespaces, root has another number
    /// Who may write to the last directory, if its sticky bit protects the entries.
    const char* sticky_ = nullptr;
    int links_ = 0;
};

} // namespace

std::string parent_of(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

bool is_of(const struct stat& info, uid_t owner) {
    return info.st_uid == owner || info.st_uid == 0 || info.st_uid == geteuid();
}

bool is_private_directory(const struct stat& info) {
    return S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO)) == S_IRWXU;
}

Fd open_private_directory(const std::string& path) {
    Fd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (directory && fstat(directory.get(), &info) == 0 && is_private_directory(info)) return directory;
    return {};
}

const char* why_foreign(const struct stat& directory, const struct stat& file, uid_t owner) {
    if ((directory.st_mode & S_IWOTH) != 0) return "everybody can write to its directory";
    if ((file.st_mode & S_IWOTH) != 0) return open_to_all;
    if ((directory.st_mode & S_IWGRP) != 0 && (directory.st_mode & S_ISVTX) == 0) return nullptr;
    if (!is_of(directory, owner)) return "its directory belongs to another user";
    return is_of(file, owner) ? nullptr : of_another;
}

bool has_foreign_owner(const std::string& path) {
    struct stat own {};
    struct stat directory {};
    for (std::string entry = path, parent; entry != "/" && !entry.empty(); entry = parent) {
        parent = parent_of(entry);
        if (lstat(entry.c_str(), &own) != 0 || lstat(parent.c_str(), &directory) != 0) continue;
        if ((directory.st_mode & S_IWOTH) != 0 && !is_of(own)) return true;
    }
    return false;
}

std::optional<Foreign> find_foreign(const std::string& path, const OwnershipRules& rules) {
    return Walk(path, rules).run();
}

} // namespace containerize

#include "session/ssh_settings.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/text.h"

#include <array>
#include <set>

#include <fcntl.h>
#include <fnmatch.h>
#include <strings.h>
#include <sys/mount.h>
#include <unistd.h>

namespace containerize::session {

namespace {

/// What ssh reads for all users; SUSE has the second one.
constexpr std::array main_files = {"/etc/ssh/ssh_config", "/usr/etc/ssh/ssh_config"};
constexpr std::uint64_t largest_file = 1U << 20U;
/// The depth to which ssh follows includes.
constexpr int deepest = 16;

/// Takes the next argument from the front of a line; it may be quoted.
std::string next_argument(std::string_view& line) {
    const auto is_separator = [](char c) {
        return std::string_view(" \t\r\f=").find(c) != std::string_view::npos;
    };
    while (!line.empty() && is_separator(line.front()))
        line.remove_prefix(1);
    std::string argument;
    bool quoted = false;
    while (!line.empty() && (quoted || !is_separator(line.front()))) {
        if (line.front() == '"')
            quoted = !quoted;
        else
            argument += line.front();
        line.remove_prefix(1);
    }
    return argument;
}

/// Wildcards are expected in the last component only; others are not expanded.
std::vector<fs::path> matching(const fs::path& pattern) {
    if (pattern.filename().string().find_first_of("*?[") == std::string::npos) return {pattern};
    std::vector<fs::path> found;
    for (const auto& name : names_in(pattern.parent_path()))
        if (fnmatch(pattern.filename().c_str(), name.c_str(), FNM_PERIOD) == 0)
            found.push_back(pattern.parent_path() / name);
    return found;
}

void find_included(const fs::path& file, int depth, std::set<std::string>& found) {
    const auto text = read_file(file, largest_file);
    if (!text || depth == deepest) return;
    for (const auto& include : ssh_includes(*text)) {
        // Includes in home directories, and with ssh's tokens or variables, are not for all users.
        if (include.find_first_of("~%$") != std::string::npos) continue;
        for (const auto& path : matching(fs::path("/etc/ssh") / include)) {
            std::error_code failed;
            const auto real = fs::canonical(path, failed);
            if (!failed && found.insert(real.string()).second) find_included(real, depth + 1, found);
        }
    }
}

/// Whether the file is the system's: it is below /etc or /usr, and root alone may write to the file and to
/// the directories above it.
bool is_of_the_system(const fs::path& path, const Look& look) {
    if (!is_below(path, "/etc") && !is_below(path, "/usr")) return false;
    for (auto one = path; one != one.root_path(); one = one.parent_path()) {
        struct stat info {};
        if (look(one.c_str(), &info) != 0 || info.st_uid != 0 || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
            return false;
    }
    return true;
}

bool is_same(const struct stat& one, const struct stat& other) {
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino && one.st_size == other.st_size &&
           one.st_mtim.tv_sec == other.st_mtim.tv_sec && one.st_mtim.tv_nsec == other.st_mtim.tv_nsec;
}

} // namespace

std::vector<std::string> ssh_includes(std::string_view text) {
    std::vector<std::string> includes;
    for (auto line : split(text, '\n')) {
        if (strcasecmp(next_argument(line).c_str(), "include") != 0) continue;
        for (auto argument = next_argument(line); !argument.empty() && argument.front() != '#';
             argument = next_argument(line))
            includes.push_back(std::move(argument));
    }
    return includes;
}

std::vector<std::string> SshSettings::refresh() {
    remove_outdated();
    std::set<std::string> included;
    for (const char* file : main_files)
        find_included(file, 0, included);
    std::vector<std::string> shown;
    for (const auto& path : included) {
        struct stat info {};
        // Skips files of root, where root is seen as such, and our own copies.
        if (stat(path.c_str(), &info) != 0 || info.st_uid == 0 || info.st_uid == geteuid()) continue;
        if (S_ISREG(info.st_mode) && is_of_the_system(path, look_) && show_copy(path)) shown.push_back(path);
    }
    return shown;
}

void SshSettings::remove_outdated() {
    std::erase_if(copies_, [](const Copy& copy) {
        struct stat original {};
        struct stat shown {};
        const bool is_there = stat(copy.path.c_str(), &shown) == 0 && is_same(shown, copy.shown);
        // The file was replaced, which also removed the copy mounted over it.
        if (!is_there) return true;
        if (fstat(copy.original.get(), &original) == 0 && is_same(original, copy.made_of)) return false;
        umount2(copy.path.c_str(), MNT_DETACH);
        return true;
    });
}

bool SshSettings::show_copy(const std::string& path) {
    Copy copy{.path = path, .original = Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC))};
    if (!copy.original || fstat(copy.original.get(), &copy.made_of) != 0) return false;
    const auto text = read_file(path_of(copy.original), largest_file);
    const auto file = work_ / copy_name;
    unlink(file.c_str());
    const Fd made(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!text || !made) return false;
    const bool shown = fchmod(made.get(), 0644) == 0 &&
                       write(made.get(), text->data(), text->size()) == static_cast<ssize_t>(text->size()) &&
                       fstat(made.get(), &copy.shown) == 0 &&
                       mount(file.c_str(), path.c_str(), nullptr, MS_BIND, nullptr) == 0;
    unlink(file.c_str());
    if (shown) copies_.push_back(std::move(copy));
    return shown;
}

} // namespace containerize::session

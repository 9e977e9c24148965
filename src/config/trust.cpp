#include "config/config.h"

#include <sys/stat.h>
#include <unistd.h>

namespace containerize::config {

namespace {

std::unexpected<Error> refuse(const std::filesystem::path& file, std::string why, std::string hint) {
    return fail_input("this configuration is not used", std::move(why), file.string(), std::move(hint));
}

/// Whether root alone decides what is in there, or lets a group do so.
bool is_kept_by_root(const std::filesystem::path& directory) {
    struct stat info {};
    return stat(directory.c_str(), &info) == 0 && info.st_uid == 0 && (info.st_mode & S_IWOTH) == 0;
}

} // namespace

Status check_trusted(const std::filesystem::path& file) {
    struct stat info {};
    if (stat(file.c_str(), &info) != 0) return fail_errno("cannot look at the configuration", file.string());
    if (info.st_uid != 0 && info.st_uid != geteuid())
        return refuse(file, "it belongs to another user, who could have anything run by it",
                      "Make a copy of your own.");
    const bool by_all = (info.st_mode & S_IWOTH) != 0;
    const bool by_group = (info.st_mode & S_IWGRP) != 0 && !is_kept_by_root(file.parent_path());
    if (!by_all && !by_group) return {};
    return refuse(file, by_all ? "everybody may write to it" : "its group may write to it",
                  "Take that away: chmod go-w " + file.string());
}

} // namespace containerize::config

#include "install/prefix.h"

#include "runtime/manifest.h"
#include "util/filesystem.h"

#include <array>
#include <cstdlib>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::install {

namespace {

constexpr std::string_view own_leftovers = ".containerize-";

/// The first entry that is not the rest of a build of ours; empty if there is none.
std::string foreign_entry(const fs::path& directory) {
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(directory, failed)) {
        const auto name = entry.path().filename().string();
        if (!name.starts_with(own_leftovers)) return name;
    }
    return {};
}

bool is_special(const fs::path& prefix) {
    static constexpr std::array<std::string_view, 12> places = {
        "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/proc", "/root", "/sys", "/tmp", "/usr"};
    for (const auto place : places)
        if (prefix == place) return true;
    const char* home = std::getenv("HOME");
    std::error_code failed;
    return home != nullptr && *home != '\0' && prefix == fs::weakly_canonical(home, failed);
}

} // namespace

Result<fs::path> check_prefix(const std::string& given, bool force) {
    if (given.empty()) return fail_input("the prefix is empty", {}, {}, "Give --prefix a directory.");
    if (given.find(':') != std::string::npos || given.find('\n') != std::string::npos)
        return fail_input("this prefix cannot be used",
                          "PATH cannot hold a directory with ':' or a line break in its name", given,
                          "Choose another directory.");
    auto prefix = resolve(given);
    if (!prefix) return fail(std::move(prefix.error()));
    const std::string shown = prefix->string();
    if (shown.find(':') != std::string::npos)
        return fail_input("this prefix cannot be used", "PATH cannot hold a directory with ':' in its name",
                          shown, "Choose another directory.");
    if (is_special(*prefix))
        return fail_input("this directory is not one for an installation", {}, shown,
                          "Give a directory of its own, such as " + shown + (shown == "/" ? "" : "/") +
                              "env.");
    for (auto parent = prefix->parent_path(); parent != parent.root_path(); parent = parent.parent_path())
        if (runtime::is_installation(parent))
            return fail_input("this prefix lies inside another installation", parent.string(), shown,
                              "Choose a directory beside it.");
    struct stat info {};
    if (stat(prefix->c_str(), &info) != 0) {
        if (errno == ENOENT) return *prefix;
        return fail_errno("cannot examine the prefix", shown);
    }
    if (!S_ISDIR(info.st_mode))
        return fail_input("the prefix is not a directory", {}, shown,
                          "Choose another place, or remove the file.");
    if (runtime::is_installation(*prefix)) {
        if (force) return *prefix;
        return fail_input("there is an installation already", {}, shown,
                          "Use --force to replace it, or choose another prefix.");
    }
    if (const auto entry = foreign_entry(*prefix); !entry.empty())
        return fail_input("the prefix is not empty", "it holds '" + entry + "'", shown,
                          "Choose a directory that is empty or does not exist.");
    return *prefix;
}

Result<Claim> claim_prefix(const fs::path& prefix) {
    Claim claim{.prefix = prefix, .existed = true, .made_parents = {}, .lock = {}};
    std::vector<fs::path> missing;
    std::error_code failed;
    for (auto one = prefix.parent_path(); !fs::exists(one, failed); one = one.parent_path())
        missing.insert(missing.begin(), one);
    const auto undo = [&] {
        for (auto made = claim.made_parents.rbegin(); made != claim.made_parents.rend(); ++made)
            rmdir(made->c_str());
    };
    for (const auto& directory : missing) {
        if (mkdir(directory.c_str(), 0777) == 0) {
            claim.made_parents.push_back(directory);
        } else if (errno != EEXIST) {
            auto error = fail_errno("cannot make the directory", directory.string());
            undo();
            error.error().fault = Fault::input;
            return error;
        }
    }
    if (mkdir(prefix.c_str(), 0777) == 0) {
        claim.existed = false;
    } else if (errno != EEXIST) {
        auto error = fail_errno("cannot make the prefix", prefix.string());
        undo();
        error.error().fault = Fault::input;
        return error;
    }
    if (access(prefix.c_str(), W_OK | X_OK) != 0) {
        auto error = fail_errno("cannot write to the prefix", prefix.string());
        error.error().fault = Fault::input;
        return error;
    }
    claim.lock.reset(open(prefix.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!claim.lock) return fail_errno("cannot open the prefix", prefix.string());
    if (flock(claim.lock.get(), LOCK_EX | LOCK_NB) == 0) return claim;
    if (errno == EWOULDBLOCK)
        return fail({.what = "another build is under way there",
                     .why = {},
                     .where = prefix.string(),
                     .hint = "Wait for it to end, or choose another prefix."});
    return claim; // a filesystem without locks: the last rename decides
}

} // namespace containerize::install

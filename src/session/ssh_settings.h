// Works around ssh's refusal to start if a file that its settings include belongs neither to root nor to the
// user: in a user namespace, root's files appear to be nobody's.
#pragma once

#include "core/fd.h"
#include "core/ownership.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

namespace containerize::session {

/// The arguments of all `Include` lines in such a file's text.
std::vector<std::string> ssh_includes(std::string_view text);

/// Shows copies that are the user's in place of those files, in the caller's mount namespace.
class SshSettings {
public:
    static constexpr const char* copy_name = "ssh-settings";
    /// `work` is a directory of ours, in which a file `copy_name` exists for a moment. `look` shows the real
    /// owners of files.
    SshSettings(std::filesystem::path work, Look look) : work_(std::move(work)), look_(std::move(look)) {}

    /// Call this from time to time, because files are added, changed and replaced. Returns the paths over
    /// which new copies were mounted.
    std::vector<std::string> refresh();

private:
    struct Copy {
        std::string path;
        Fd original;
        struct stat made_of {}; ///< the original, when it was copied
        struct stat shown {};
    };
    void remove_outdated();
    bool show_copy(const std::string& path);

    std::filesystem::path work_;
    Look look_;
    std::vector<Copy> copies_;
};

} // namespace containerize::session

// ssh refuses to start where files that its settings include belong neither to root nor to the user. In a
// user namespace root's files seem to belong to nobody.
#pragma once

#include "util/fd.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

namespace containerize::runtime {

/// Arguments of `Include` in the text of such a file.
std::vector<std::string> ssh_includes(std::string_view text);

/// Shows copies that are the user's in place of those files, in the mount namespace of the caller.
class SshSettings {
public:
    static constexpr const char* copy_name = "ssh-settings";
    /// `work` is a directory of ours, in which there is a file `copy_name` for a moment.
    explicit SshSettings(std::filesystem::path work) : work_(std::move(work)) {}

    /// To be called again from time to time: files are added, changed and replaced. Returns the paths that
    /// are shown by new copies.
    std::vector<std::string> refresh();

private:
    struct Copy {
        std::string path;
        Fd original;
        struct stat made_of {}; ///< the original when it was copied
        struct stat shown {};
    };
    void remove_outdated();
    bool show_copy(const std::string& path);

    std::filesystem::path work_;
    std::vector<Copy> copies_;
};

} // namespace containerize::runtime

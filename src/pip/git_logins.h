// Hides logins in the URLs of git repositories. pip and uv pass such URLs to git on its command line, which
// all users of the machine can read; the environment is private.
#pragma once

#include "spec/requirements.h"
#include "util/process.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

struct GitLogin {
    std::string repository; ///< "https://host/group/project.git"
    std::string user;
    std::optional<std::string> password;
};

/// Returns the logins in http URLs; ssh has its own ways to authenticate.
std::vector<GitLogin> git_logins_in(const spec::Requirements& requirements);

/// Returns `text` with logins removed from the URLs of git repositories.
std::string without_git_logins(std::string_view text);

/// Makes git (2.31 or newer) find the logins in its environment, for the repositories and also for the rest
/// of their hosts, where submodules may be.
void hand_to_git(const std::vector<GitLogin>& logins, Environment& environment);

} // namespace containerize::pip

// Logins in the URLs of git repositories. pip and uv give git a URL on its command line, which all users of
// the machine can read; nobody else can read its environment.
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

/// Those for http, over which git asks for logins: ssh's has its own ways.
std::vector<GitLogin> git_logins_in(const spec::Requirements& requirements);

/// `text` with the URLs of git as they are without logins.
std::string without_git_logins(std::string_view text);

/// Lets git find the logins in its environment; for the rest of the repository's host, too, where submodules
/// may be. Git knows how to from 2.31 on.
void hand_to_git(const std::vector<GitLogin>& logins, Environment& environment);

} // namespace containerize::pip

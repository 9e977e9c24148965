// Hides logins in the URLs of indexes and of pages with links. To build packages, pip passes such URLs on the
// command line of another pip, which all users of the machine can read; a netrc file is private.
#pragma once

#include "util/process.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::pip {

struct IndexLogin {
    std::string user, password;
};
/// By host without port, because a netrc file does not distinguish ports.
using IndexLogins = std::map<std::string, IndexLogin>;

/// Returns the logins in http URLs that a netrc file can express: not if the URLs of a host have different
/// logins, nor a token without a password. Ignores git's URLs (pip/git_logins.h).
IndexLogins index_logins_in(const std::vector<std::string>& texts);

/// Returns `text` with logins removed from URLs of these hosts.
std::string without_index_logins(std::string_view text, const IndexLogins& logins);

/// Returns a netrc file with the contents of the user's `own` and these logins.
std::string netrc_with(std::string own, const IndexLogins& logins);

/// Returns pip's configured addresses of indexes and links as PIP_ variables. `configuration` is the output
/// of `pip config list`.
Environment index_settings(std::string_view configuration);

} // namespace containerize::pip

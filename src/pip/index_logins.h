// Logins in the URLs of indexes and of pages with links. pip gives them to the pip that it starts for what
// builds a package, on its command line, which all users of the machine can read; nobody else can read a
// netrc file.
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
/// By host, without port: a netrc file knows no more of an address.
using IndexLogins = std::map<std::string, IndexLogin>;

/// Those in http URLs of these texts that a netrc file can say: not where two URLs of a host have different
/// ones, nor a token without a password. Logins of git are none of them (pip/git_logins.h).
IndexLogins index_logins_in(const std::vector<std::string>& texts);

/// `text` with URLs of these hosts as they are without logins.
std::string without_index_logins(std::string_view text, const IndexLogins& logins);

/// A netrc file with what `own`, the user's, has, and these logins.
std::string netrc_with(std::string own, const IndexLogins& logins);

/// PIP_ variables with the addresses that pip's configuration has for indexes and links; `configuration` is
/// what `pip config list` prints.
Environment index_settings(std::string_view configuration);

} // namespace containerize::pip

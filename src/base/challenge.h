// A registry's answer to requests without credentials (RFC 9110, section 11.6.1), and the answer of the token
// server that it names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::base {

struct Challenge {
    std::string scheme;                                 ///< "bearer", "basic": in lower case
    std::map<std::string, std::string> parameters = {}; ///< names in lower case
};

/// Parses a WWW-Authenticate header, which may have several challenges; skips what it cannot understand.
std::vector<Challenge> parse_challenges(std::string_view header);

/// The token in a token server's answer; nullopt if there is none that a header can hold.
std::optional<std::string> parse_token(std::string_view answer);

} // namespace containerize::base

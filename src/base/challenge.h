// What a registry answers to who has not proved anything yet (RFC 9110, section 11.6.1), and what the server
// says to which it sends.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::base {

struct Challenge {
    std::string scheme;                            ///< "bearer", "basic": in lower case
    std::map<std::string, std::string> parameters; ///< names in lower case
};

/// Of a WWW-Authenticate header, which may have several; what cannot be understood is left out.
std::vector<Challenge> parse_challenges(std::string_view header);

/// The token in a token server's answer; nothing if there is none that a header can hold.
std::optional<std::string> parse_token(std::string_view answer);

} // namespace containerize::base

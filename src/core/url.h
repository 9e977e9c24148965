// URLs, as far as needed to find servers and to protect secrets.
#pragma once

#include <string>
#include <string_view>

namespace containerize {

/// Whether the text begins with a scheme and "://", such as "https://" or "file://".
bool is_url(std::string_view text);

/// Removes what a person may not read and a file may not keep: "user:password@", "/t/TOKEN" of conda
/// channels, the query and the fragment. file:// URLs, and what is no URL, stay the same.
std::string without_credentials(std::string_view url);

/// The same for every URL in a line, such as a package specification or an option of pip. Fragments stay,
/// because they are checksums there, and so does the user name for ssh, which is needed.
std::string without_credentials_within(std::string_view line);

/// The length of "user:password@" in what follows "://". A password may have an unencoded '@', '/' or '#', as
/// far as a port, or an '@' in the path, can be told from that.
std::size_t url_login_size(std::string_view rest);

/// "https://Host:8443/x" -> "host:8443", in lower case; empty for file:// and what is no URL.
std::string url_host(std::string_view url);

/// Without the slashes at the end, except of "/" itself.
std::string_view without_end_slash(std::string_view url);

/// Whether a login or token stored for `place` is meant for `url`, which has no credentials. A place is
/// "https://host/path", or "host/path" for any scheme; "host" means all its ports, as in ~/.netrc, and
/// "*.domain" the domain and all hosts in it, as in rattler and pixi.
bool is_place_of(std::string_view place, std::string_view url);

/// Encodes all but letters, digits, "-_.~" and what is in `kept` as %XX.
std::string percent_encoded(std::string_view text, std::string_view kept = {},
                            std::string_view digits = "0123456789ABCDEF");
/// Encodes blanks, control characters, quotes and what is not ASCII as %XX; existing escapes stay.
std::string url_encoded(std::string_view url);
/// Decodes %XX.
std::string url_decoded(std::string_view text);

/// The path in a file:// URL; empty for others.
std::string file_url_path(std::string_view url);
std::string file_url(std::string_view absolute_path);

} // namespace containerize

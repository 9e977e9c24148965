// URLs: as much of them as is needed to find servers and to keep secrets.
#pragma once

#include <string>
#include <string_view>

namespace containerize {

/// "https://...", "file://...": a scheme of letters and "://".
bool is_url(std::string_view text);

/// For everything that a person may read or a file may keep: without "user:password@", the "/t/TOKEN" of
/// conda channels, the query and the fragment of http URLs. What is no URL stays as it is.
std::string without_credentials(std::string_view url);

/// The same for every URL in a line: a package specification, an option of pip. Fragments stay, since they
/// are checksums there, and so does the user's name of ssh, without which nothing works.
std::string without_credentials_within(std::string_view line);

/// Of what follows "://": the length of "user:password@", also where a password's '@', '/' or '#' is not
/// encoded, as far as that can be told from a port or from an '@' in the path.
std::size_t url_login_size(std::string_view rest);

/// "https://Host:8443/x" -> "host:8443", in lower case; empty for file:// and what is no URL.
std::string url_host(std::string_view url);

/// Whether a login or token that is stored for `place` is meant for this URL, which has no credentials: a
/// place is "https://host/path", or "host/path" for any scheme. "host" counts for all its ports, as in
/// ~/.netrc, and
/// "*.domain" for the domain and all hosts in it, as rattler and pixi have it.
bool is_place_of(std::string_view place, std::string_view url);

/// Blanks, controls, quotes and what is not ASCII become %XX; what is encoded already stays.
std::string url_encoded(std::string_view url);
/// %XX become bytes.
std::string url_decoded(std::string_view text);

/// The path that a file:// URL names; empty for others.
std::string file_url_path(std::string_view url);
std::string file_url(std::string_view absolute_path);

} // namespace containerize

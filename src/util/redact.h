// Secrets, and how they are kept out of all that is written down or shown: log, messages, records.
//
// A secret is found by its place in a text - the login and the token in a URL, values in its query, values of
// options, variables and headers with telling names - or because it is known: whatever a build's inputs and
// the user's configuration hold is remembered, and replaced wherever else it turns up.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace containerize {

/// What stands in a secret's place.
inline constexpr std::string_view redaction_mark = "****";

/// For everything that a person may read or a file may keep.
std::string redacted(std::string_view text);
/// The same for the words of a command line, joined as a shell would take them.
std::string redacted_command(const std::vector<std::string>& words);

/// From now on redacted() replaces it wherever it stands, also percent-encoded, in base64 or as JSON has it,
/// and each longer line of it, and this process leaves no core dump. What is shorter than four bytes is only
/// found by its place.
void remember_secret(std::string_view secret);
/// A password, and what basic authentication makes of it.
void remember_login(std::string_view user, std::string_view password);
/// All that stands in this text where secrets stand.
void remember_secrets_in(std::string_view text);
/// Those of variables.
void remember_secrets_of(const std::map<std::string, std::string>& environment);
/// Those of a command line.
void remember_secrets_of(const std::vector<std::string>& words);
/// Passwords of a file such as ~/.netrc.
void remember_secrets_of_netrc(std::string_view text);

/// Overwrites secrets in the command line of this process, which every user of the machine can read.
void hide_secrets_of_process(int argc, char** argv);

} // namespace containerize

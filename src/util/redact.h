// Secrets, and how they are kept out of everything that is written or shown: log, messages, records.
//
// A secret is recognized by its position in a text (login and token in a URL, values in its query, values of
// options, variables and headers with telling names) or because it is known: what a build's inputs and the
// user's configuration hold is remembered, and replaced wherever it appears.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace containerize {

/// Replaces a secret.
inline constexpr std::string_view redaction_mark = "****";

/// Replaces the secrets in a text. For everything that a person may read or a file may keep.
std::string redacted(std::string_view text);
/// The same for the words of a command line, joined and quoted for a shell.
std::string redacted_command(const std::vector<std::string>& words);

/// Whether all variables in a text are written as ${NAME}. pip and uv expand no others, so "$NAME" may be a
/// password.
bool has_only_braced_variables(std::string_view text);

/// From now on redacted() replaces this secret everywhere, also percent-encoded, in base64 or escaped as in
/// JSON, and each of its longer lines; and this process leaves no core dump. Secrets of less than four bytes
/// are only recognized by position.
void remember_secret(std::string_view secret);
/// Remembers the value of a variable that stands in a URL. redacted() puts ${NAME} in its place in all URLs
/// of other machines, so that what is written can be used again. Elsewhere the value may be any word: it is
/// replaced only if the name tells that it is a secret.
void remember_variable(std::string_view name, std::string_view value);
/// Remembers a password, and the header that basic authentication makes of it.
void remember_login(std::string_view user, std::string_view password);
/// Remembers what redacted() recognizes by position in this text.
void remember_secrets_in(std::string_view text);
/// Remembers the secrets in variables.
void remember_secrets_of(const std::map<std::string, std::string>& environment);
/// Remembers the secrets in a command line.
void remember_secrets_of(const std::vector<std::string>& words);
/// Remembers the passwords in a file such as ~/.netrc.
void remember_secrets_of_netrc(std::string_view text);

/// Overwrites secrets in the command line of this process, which every user of the machine can read.
void hide_secrets_of_process(int argc, char** argv);

} // namespace containerize

// Messages on a session's control socket: one request, one answer.
#pragma once

#include "core/error.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace containerize::launch {

/// Largest message, in bytes.
inline constexpr std::size_t control_message_size = 16384;

enum class ControlVerb { mount, statistics };

struct ControlRequest {
    ControlVerb verb = ControlVerb::mount;
    std::string prefix; ///< an installation's path
};

/// The request as sent: the verb's name, a NUL, the path.
std::string to_message(const ControlRequest& request);
/// Returns nullopt for an unknown verb, or if the path is not absolute.
std::optional<ControlRequest> parse_request(std::string_view message);

/// Answers to a mount request other than a failure.
inline constexpr const char* mounted_answer = "mounted";
inline constexpr const char* stale_answer = "stale";
/// What a starting session reports if another one has taken its place meanwhile.
inline constexpr const char* superseded_answer = "superseded";

/// Converts a failure to an answer, and back.
std::string answer_for(const Error& error);
Error error_of_answer(std::string_view answer);

} // namespace containerize::launch

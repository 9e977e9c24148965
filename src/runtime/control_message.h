// What a session's control socket is asked, and what it answers: one message each.
#pragma once

#include "util/error.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace containerize::runtime {

/// No message is longer.
inline constexpr std::size_t control_message_size = 16384;

enum class ControlVerb { mount, statistics };

struct ControlRequest {
    ControlVerb verb = ControlVerb::mount;
    std::string prefix; ///< an installation's path
};

/// As it is sent: the verb's name, a NUL, the path.
std::string to_message(const ControlRequest& request);
/// Nothing for a verb that is not known, and for what is no absolute path.
std::optional<ControlRequest> parse_request(std::string_view message);

/// Answers to a mount request that is no failure.
inline constexpr std::string_view mounted_answer = "mounted";
inline constexpr std::string_view stale_answer = "stale";
/// Of a session that found another in its place when it could go on.
inline constexpr const char* superseded_answer = "superseded";

/// The answer for a failure, and the failure that such an answer tells.
std::string answer_for(const Error& error);
Error error_of_answer(std::string_view answer);

} // namespace containerize::runtime

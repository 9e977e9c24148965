// Requests to a session's control socket, and its answers to launchers.
#include "harness.h"
#include "launch/control_message.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::text_of(data, size).substr(0, launch::control_message_size);
    if (const auto request = launch::parse_request(text)) {
        fuzz::require(request->prefix.starts_with('/') && request->prefix.find('\0') == std::string::npos);
        fuzz::require(launch::to_message(*request) == text);
    }
    const auto error = launch::error_of_answer(text);
    if (!error.what.empty()) fuzz::require_message(error);
    return 0;
}

#include "launch/control_message.h"

#include <array>
#include <climits>
#include <utility>

namespace containerize::launch {

namespace {

constexpr std::array<std::pair<ControlVerb, std::string_view>, 2> verbs = {
    {{ControlVerb::mount, "mount"}, {ControlVerb::statistics, "statistics"}}};

/// Precedes a failure that another engine may not have (Fault::engine).
constexpr char engine_mark = '\1';

} // namespace

std::string to_message(const ControlRequest& request) {
    std::string message;
    for (const auto& [verb, name] : verbs)
        if (verb == request.verb) message = name;
    return message.append(1, '\0').append(request.prefix);
}

std::optional<ControlRequest> parse_request(std::string_view message) {
    const auto separator = message.find('\0');
    if (separator == message.npos) return std::nullopt;
    const auto prefix = message.substr(separator + 1);
    if (!prefix.starts_with('/') || prefix.size() >= PATH_MAX || prefix.find('\0') != prefix.npos)
        return std::nullopt;
    for (const auto& [verb, name] : verbs)
        if (name == message.substr(0, separator))
            return ControlRequest{.verb = verb, .prefix = std::string(prefix)};
    return std::nullopt;
}

std::string answer_for(const Error& error) {
    return (error.fault == Fault::engine ? std::string(1, engine_mark) : std::string()) + to_string(error);
}

Error error_of_answer(std::string_view answer) {
    const bool other_engine = answer.starts_with(engine_mark);
    return {.what = std::string(answer.substr(other_engine ? 1 : 0)),
            .fault = other_engine ? Fault::engine : Fault::failure};
}

} // namespace containerize::launch

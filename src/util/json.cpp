#include "util/json.h"

namespace containerize {

namespace {

using nlohmann::json;

constexpr int deepest = 200;

bool is_too_deep(std::string_view text) {
    int depth = 0;
    bool in_text = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_text && c == '\\') {
            ++i;
        } else if (c == '"') {
            in_text = !in_text;
        } else if (!in_text && (c == '[' || c == '{')) {
            if (++depth > deepest) return true;
        } else if (!in_text && (c == ']' || c == '}')) {
            --depth;
        }
    }
    return false;
}

} // namespace

json parse_json(std::string_view text) {
    if (is_too_deep(text)) throw json::other_error::create(501, "it is nested too deeply", nullptr);
    return json::parse(text);
}

json parse_json_quietly(std::string_view text) {
    if (is_too_deep(text)) return json(json::value_t::discarded);
    return json::parse(text, nullptr, false);
}

} // namespace containerize

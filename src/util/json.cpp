#include "util/json.h"

#include "core/text.h"

#include <algorithm>

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

/// Null if it is missing.
const json& member_of(const json& object, const char* key) {
    static const json none;
    const auto found = object.is_object() ? object.find(key) : object.end();
    return found == object.end() ? none : *found;
}

} // namespace

json parse_json(std::string_view text) {
    if (is_too_deep(text)) throw json::other_error::create(501, "it is nested too deeply", nullptr);
    return json::parse(text);
}

std::string quoted(const std::string& text) {
    auto result = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
    replace_all(result, "\x7F", "\\u007F"); // JSON allows DEL, the others do not
    return result;
}

std::string reason(const json::exception& problem, std::string_view text) {
    if (const auto* broken = dynamic_cast<const json::parse_error*>(&problem)) {
        const auto end = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
        const auto line = 1 + std::ranges::count(end.substr(0, broken->byte), '\n');
        return broken->byte > end.size() ? "the JSON text ends too early, in line " + std::to_string(line)
                                         : "line " + std::to_string(line) + " is not valid JSON";
    }
    // "[json.exception.type_error.302] type must be string, but is null"
    std::string_view words = problem.what();
    if (const auto tag = words.find("] "); words.starts_with("[json.exception.") && tag != words.npos)
        words.remove_prefix(tag + 2);
    if (words.starts_with("cannot use ")) return "a value that must be an object is not one";
    return std::string(words.substr(0, 300));
}

json parse_json_quietly(std::string_view text) {
    if (is_too_deep(text)) return json(json::value_t::discarded);
    return json::parse(text, nullptr, false);
}

std::string text_of(const json& object, const char* key) {
    const auto& member = member_of(object, key);
    return member.is_string() ? member.get<std::string>() : "";
}

std::vector<std::string> texts_of(const json& object, const char* key) {
    std::vector<std::string> texts;
    if (const auto& member = member_of(object, key); member.is_array())
        for (const auto& one : member)
            if (one.is_string()) texts.push_back(one.get<std::string>());
    return texts;
}

json object_of(const json& object, const char* key) {
    const auto& member = member_of(object, key);
    return member.is_object() ? member : json::object();
}

} // namespace containerize

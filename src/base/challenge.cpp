#include "base/challenge.h"

#include "core/text.h"
#include "util/json.h"

#include <algorithm>

namespace containerize::base {

namespace {

class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {}

    std::vector<Challenge> run() {
        std::vector<Challenge> found;
        for (skip(" \t,"); !text_.empty(); skip(" \t,")) {
            auto word = token();
            if (word.empty()) return found;
            skip(" \t");
            if (!text_.starts_with('=')) {
                found.push_back({.scheme = word});
                continue;
            }
            text_.remove_prefix(1);
            skip(" \t");
            auto value = text_.starts_with('"') ? quoted() : raw();
            if (!found.empty()) found.back().parameters[word] = std::move(value);
        }
        return found;
    }

private:
    void skip(std::string_view characters) {
        text_.remove_prefix(std::min(text_.find_first_not_of(characters), text_.size()));
    }

    std::string take(std::size_t size) {
        std::string taken(text_.substr(0, size));
        text_.remove_prefix(taken.size());
        return taken;
    }

    std::string token() { return lower(take(text_.find_first_of(" \t,=\""))); }

    std::string raw() { return take(text_.find_first_of(" \t,")); }

    std::string quoted() {
        std::string value;
        text_.remove_prefix(1);
        while (!text_.empty() && text_.front() != '"') {
            if (text_.front() == '\\' && text_.size() > 1) text_.remove_prefix(1);
            value += text_.front();
            text_.remove_prefix(1);
        }
        if (!text_.empty()) text_.remove_prefix(1);
        return value;
    }

    std::string_view text_;
};

} // namespace

std::vector<Challenge> parse_challenges(std::string_view header) {
    return Parser(header).run();
}

std::optional<std::string> parse_token(std::string_view answer) {
    const auto object = parse_json_quietly(answer);
    if (!object.is_object()) return std::nullopt;
    for (const char* name : {"token", "access_token"}) {
        auto token = text_of(object, name);
        if (token.empty()) continue;
        // A line break in it would begin another header.
        const auto is_plain = [](unsigned char c) { return c > ' ' && c < 0x7f; };
        if (!std::ranges::all_of(token, is_plain)) return std::nullopt;
        return token;
    }
    return std::nullopt;
}

} // namespace containerize::base

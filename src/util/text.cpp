#include "util/text.h"

#include <algorithm>
#include <utility>

namespace containerize {

std::string lower(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return result;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    std::string result;
    std::size_t done = 0;
    for (std::size_t at = 0; (at = text.find(from, done)) != std::string::npos; done = at + from.size()) {
        result.append(text, done, at - done);
        result.append(to);
    }
    if (done == 0) return;
    result.append(text, done, std::string::npos);
    text = std::move(result);
}

std::string printable(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t at = 0; at < text.size(); ++at) {
        const auto byte = static_cast<unsigned char>(text[at]);
        // The controls from U+0080 on, as UTF-8 has them.
        const bool high = byte == 0xC2 && at + 1 < text.size() &&
                          static_cast<unsigned char>(text[at + 1]) < 0xA0 &&
                          static_cast<unsigned char>(text[at + 1]) >= 0x80;
        const bool control = high || byte == 0x7F || (byte < ' ' && text[at] != '\t' && text[at] != '\n');
        result += control ? '?' : text[at];
        at += high ? 1 : 0;
    }
    return result;
}

std::string shell_quoted(const std::string& word) {
    static constexpr const char* plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
    std::string quoted = "'";
    for (const char c : word)
        // Nothing is special between single quotes, and nothing can stand for one there.
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

} // namespace containerize

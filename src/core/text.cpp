#include "core/text.h"

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

std::string upper(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return result;
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blanks = " \t\r\f\v\n";
    const auto start = text.find_first_not_of(blanks);
    if (start == text.npos) return {};
    return text.substr(start, text.find_last_not_of(blanks) - start + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const auto end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

std::vector<std::string> words_in(std::string_view text, std::string_view separators) {
    std::vector<std::string> words;
    for (std::size_t start = 0; (start = text.find_first_not_of(separators, start)) != text.npos;) {
        const auto end = std::min(text.find_first_of(separators, start), text.size());
        words.emplace_back(text.substr(start, end - start));
        start = end;
    }
    return words;
}

bool is_hex(std::string_view text, std::size_t size) {
    return text.size() == size && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::optional<std::string_view> take_until(std::string_view& text, char end) {
    const auto at = text.find(end);
    if (at == text.npos) return std::nullopt;
    const auto part = text.substr(0, at);
    text.remove_prefix(at + 1);
    return part;
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

std::string listed(std::span<const std::string> words, std::string_view last) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i)
        text.append(i == 0 ? "" : i + 1 < words.size() ? ", " : last).append(words[i]);
    return text;
}

std::string escaped(std::string_view text, std::string_view special) {
    std::string result;
    for (const char c : text) {
        if (special.contains(c)) result += '\\';
        result += c;
    }
    return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& words, char* const* more) {
    std::vector<char*> pointers;
    for (auto& word : words)
        pointers.push_back(word.data());
    for (; more != nullptr && *more != nullptr; ++more)
        pointers.push_back(*more);
    pointers.push_back(nullptr);
    return pointers;
}

std::string shell_quoted(const std::string& word) {
    static constexpr const char* plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
    std::string quoted = "'";
    for (const char c : word)
        // Nothing is special between single quotes, where a single quote itself cannot be written.
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

} // namespace containerize

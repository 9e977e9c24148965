// Small functions on text.
#pragma once

#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace containerize {

/// ASCII letters in lower case, in any locale.
std::string lower(std::string_view text);
/// The same in upper case.
std::string upper(std::string_view text);

/// Without ASCII white space at both ends.
std::string_view trimmed(std::string_view text);

/// The parts between the separators; one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The parts that are not empty, between any of the separators.
std::vector<std::string> words_in(std::string_view text, std::string_view separators);

/// Whether it consists of this number of hexadecimal digits in lower case.
bool is_hex(std::string_view text, std::size_t size);

/// Takes the part of `text` before `end`, and skips `end`; nullopt if there is none.
std::optional<std::string_view> take_until(std::string_view& text, char end);

/// The texts with a separator between them.
template<class Texts>
std::string joined(const Texts& texts, std::string_view separator) {
    std::string text;
    bool first = true;
    for (const auto& one : texts) {
        if (!first) text += separator;
        first = false;
        text += one;
    }
    return text;
}

/// The whole text as a number without white space, decimal or in the given base; nullopt if it is none, or
/// too large.
template<class Number, class... Base>
std::optional<Number> to_number(std::string_view text, Base... base) {
    Number number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
    if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// Replaces each `from`, which is not empty, in linear time.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// "a, b or c".
std::string listed(std::span<const std::string> words, std::string_view last = " or ");

/// With a backslash before each of the `special` characters.
std::string escaped(std::string_view text, std::string_view special);

/// For execve(): pointers to the words, then those of `more`, which ends with a null pointer, and a null
/// pointer. Valid as long as both.
std::vector<char*> pointers_to(std::vector<std::string>& words, char* const* more = nullptr);

/// Quotes a word for a shell, if that is necessary.
std::string shell_quoted(const std::string& word);

} // namespace containerize

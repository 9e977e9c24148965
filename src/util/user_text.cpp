#include "util/user_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <ranges>
#include <system_error>

#include <simdjson.h>

namespace containerize {

namespace {

constexpr std::string_view blanks = " \t\r\f\v\n";

void append_utf8(std::string& text, std::uint32_t code) {
    const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
    if (code < 0x80) return add(code);
    if (code < 0x800) {
        add(0xC0U | code >> 6U);
    } else {
        if (code < 0x10000) {
            add(0xE0U | code >> 12U);
        } else {
            add(0xF0U | code >> 18U);
            add(0x80U | (code >> 12U & 0x3FU));
        }
        add(0x80U | (code >> 6U & 0x3FU));
    }
    add(0x80U | (code & 0x3FU));
}

/// What is not UTF-16 becomes what is not UTF-8.
std::string from_utf16(std::string_view data, bool big_endian) {
    const auto unit = [&](std::size_t at) -> std::uint32_t {
        if (at + 1 >= data.size()) return 0xDFFF; // half a unit: as a surrogate without its pair
        const auto first = static_cast<unsigned char>(data[at]);
        const auto second = static_cast<unsigned char>(data[at + 1]);
        return big_endian ? first << 8U | second : second << 8U | first;
    };
    std::string text;
    for (std::size_t at = 0; at < data.size(); at += 2) {
        std::uint32_t code = unit(at);
        const bool begins_pair = code >= 0xD800 && code < 0xDC00 && at + 3 < data.size();
        if (const auto next = begins_pair ? unit(at + 2) : 0; next >= 0xDC00 && next < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10U) + (next - 0xDC00);
            at += 2;
        }
        append_utf8(text, code);
    }
    return text;
}

/// The code point of an escape such as "u002F", which is removed from `text`; nothing if it is none.
std::optional<std::uint32_t> take_code_point(std::string_view& text) {
    if (text.empty()) return std::nullopt;
    const std::size_t digits = text[0] == 'x' ? 2 : text[0] == 'u' ? 4 : text[0] == 'U' ? 8 : 0;
    if (digits == 0 || text.size() <= digits) return std::nullopt;
    std::uint32_t code = 0;
    const auto* const end = text.data() + 1 + digits;
    const auto [read, failed] = std::from_chars(text.data() + 1, end, code, 16);
    if (failed != std::errc() || read != end || code > 0x10FFFF) return std::nullopt;
    text.remove_prefix(1 + digits);
    return code;
}

/// PEP 263, which pip honours: a comment in the first two lines.
bool declares_encoding(std::string_view text) {
    const auto lines = split_lines(text.substr(0, 1000));
    return std::ranges::any_of(lines | std::views::take(2), [](std::string_view line) {
        const auto coding = line.find("coding");
        return line.starts_with('#') && coding != std::string_view::npos &&
               line.substr(coding + 6).find_first_of(":=") == 0;
    });
}

} // namespace

bool is_utf8(std::string_view text) {
    return simdjson::validate_utf8(text);
}

Result<std::string> decode(std::string_view content, const std::filesystem::path& file) {
    std::string text;
    if (content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF"))
        text = from_utf16(content.substr(2), content.starts_with('\xFE'));
    else
        text = content.substr(content.starts_with("\xEF\xBB\xBF") ? 3 : 0);
    if (is_utf8(text) || declares_encoding(text)) return text;
    const auto lines = split_lines(text);
    const auto line = std::ranges::find_if_not(lines, is_utf8) - lines.begin() + 1;
    return fail_input("this is not UTF-8 text", {}, file.string() + ":" + std::to_string(line),
                      "Save the file as UTF-8.");
}

std::string without_escapes(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const auto at = std::min(text.find('\\'), text.size());
        result += text.substr(0, at);
        text.remove_prefix(std::min(at + 1, text.size()));
        if (text.empty()) break;
        if (const auto code = take_code_point(text)) {
            append_utf8(result, *code);
        } else if (text[0] == '\n' || text[0] == '\r') {
            text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
        } else {
            result += text[0];
            text.remove_prefix(1);
        }
    }
    return result;
}

std::vector<std::string_view> split_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const auto end = std::min(text.find_first_of("\r\n"), text.size());
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end);
        text.remove_prefix(text.starts_with("\r\n") ? 2 : std::min<std::size_t>(1, text.size()));
    }
    return lines;
}

std::optional<std::vector<std::string>> split_words(std::string_view text) {
    std::vector<std::string> words;
    bool in_word = false;
    char quote = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (quote == 0 && blanks.find(c) != std::string_view::npos) {
            in_word = false;
            continue;
        }
        if (!in_word) words.emplace_back();
        in_word = true;
        if (quote == 0 && (c == '\'' || c == '"')) {
            quote = c;
        } else if (c == quote) {
            quote = 0;
        } else if (c == '\\' && quote != '\'' && at + 1 < text.size()) {
            const char next = text[++at];
            // In double quotes, a backslash only escapes '"' and '\'.
            if (quote == '"' && next != '"' && next != '\\') words.back() += c;
            words.back() += next;
        } else {
            words.back() += c;
        }
    }
    if (quote != 0) return std::nullopt;
    return words;
}

} // namespace containerize

#include "spec/text.h"

#include <algorithm>
#include <cstdint>

namespace containerize::spec {

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

std::string from_utf16(std::string_view data, bool big_endian) {
    const auto unit = [&](std::size_t at) -> std::uint32_t {
        const auto first = static_cast<unsigned char>(data[at]);
        const auto second = static_cast<unsigned char>(data[at + 1]);
        return big_endian ? first << 8U | second : second << 8U | first;
    };
    std::string text;
    for (std::size_t at = 0; at + 1 < data.size(); at += 2) {
        std::uint32_t code = unit(at);
        const bool pair = code >= 0xD800 && code < 0xDC00 && at + 3 < data.size();
        if (pair) {
            code = 0x10000 + ((code - 0xD800) << 10U) + ((unit(at + 2) - 0xDC00) & 0x3FFU);
            at += 2;
        }
        append_utf8(text, code);
    }
    return text;
}

/// The number of bytes before the first that is not valid UTF-8.
std::size_t valid_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto byte = static_cast<unsigned char>(text[at]);
        const std::size_t length = byte < 0x80             ? 1
                                   : byte >> 5U == 0b110   ? 2
                                   : byte >> 4U == 0b1110  ? 3
                                   : byte >> 3U == 0b11110 ? 4
                                                           : 0;
        if (length == 0 || at + length > text.size()) return at;
        for (std::size_t i = 1; i < length; ++i)
            if (static_cast<unsigned char>(text[at + i]) >> 6U != 0b10) return at;
        at += length;
    }
    return text.size();
}

/// PEP 263, which pip honours: a comment in the first two lines.
bool declares_encoding(std::string_view text) {
    const auto lines = split_lines(text.substr(0, 1000));
    return std::any_of(lines.begin(),
                       lines.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, lines.size())),
                       [](std::string_view line) {
                           const auto coding = line.find("coding");
                           return line.starts_with('#') && coding != std::string_view::npos &&
                                  line.substr(coding + 6).find_first_of(":=") == 0;
                       });
}

} // namespace

Result<std::string> decode(std::string_view content, const std::filesystem::path& file) {
    if (content.starts_with("\xFF\xFE")) return from_utf16(content.substr(2), false);
    if (content.starts_with("\xFE\xFF")) return from_utf16(content.substr(2), true);
    if (content.starts_with("\xEF\xBB\xBF")) content.remove_prefix(3);
    const auto valid = valid_utf8(content);
    if (valid == content.size() || declares_encoding(content)) return std::string(content);
    const auto line = std::ranges::count(content.substr(0, valid), '\n') + 1;
    return fail_input("this is not UTF-8 text", {}, file.string() + ":" + std::to_string(line),
                      "Save the file as UTF-8.");
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

std::string_view trimmed(std::string_view text) {
    const auto start = text.find_first_not_of(blanks);
    if (start == std::string_view::npos) return {};
    return text.substr(start, text.find_last_not_of(blanks) - start + 1);
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

} // namespace containerize::spec

#include "core/printable.h"

namespace containerize {

namespace {

bool is_control(unsigned char c) {
    return c < 0x20 || c == 0x7f;
}

/// Whether this is the second byte of a control character that has two in UTF-8, U+0080 to U+009F, which some
/// terminals obey.
bool is_second_of_control(std::string_view text, std::size_t at) {
    const auto c = static_cast<unsigned char>(text[at]);
    return at > 0 && text[at - 1] == '\xc2' && c >= 0x80 && c < 0xa0;
}

std::string without_controls(std::string_view text, std::string_view but) {
    std::string result;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const char c = text[at];
        if (is_second_of_control(text, at))
            result.back() = '?';
        else
            result += is_control(static_cast<unsigned char>(c)) && but.find(c) == but.npos ? '?' : c;
    }
    return result;
}

} // namespace

std::string printable(std::string_view text) {
    return without_controls(text, "\t\n");
}

std::string printable_line(std::string_view text) {
    return without_controls(text, {});
}

} // namespace containerize

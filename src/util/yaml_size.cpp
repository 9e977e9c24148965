#include "util/yaml_size.h"

namespace containerize {

namespace {

/// '\0' belongs to a blank in UTF-16.
bool is_apart_before(std::string_view text, std::size_t at) {
    return at == 0 || std::string_view(" \t\r\n\0", 5).find(text[at - 1]) != std::string_view::npos;
}

} // namespace

std::size_t most_yaml_nodes(std::string_view text) {
    std::size_t nodes = 4; // for what precedes the first of these characters, or follows the last
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char next = i + 1 < text.size() ? text[i + 1] : '\n';
        const bool is_apart = next == ' ' || next == '\t' || next == '\0'; // the latter in UTF-16
        const bool ends_line = next == '\n' || next == '\r';
        switch (text[i]) {
        case ',': // "{a, b}" has a value for each
        case '[': // "[a: b]" has a mapping
        case '{': // "{{}}" has a value for the inner one
            nodes += 2;
            break;
        case '?':
            nodes += is_apart || ends_line ? 2 : 0;
            break;
        case '-':
            nodes += is_apart ? 1 : 0;
            break;
        case ':': // ": a" has an empty key
            nodes += is_apart_before(text, i) ? 2 : 1;
            break;
        case '\n':
        case '\r':
            ++nodes;
            break;
        default:
            break;
        }
    }
    return nodes;
}

} // namespace containerize

#include "util/yaml_size.h"

namespace containerize {

std::size_t most_yaml_nodes(std::string_view text) {
    std::size_t nodes = 2; // a mapping, and its last value
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_apart = text.substr(i + 1, 1) == " " || text.substr(i + 1, 1) == "\t";
        switch (text[i]) {
        case ',': // "{a, b}" has a value for each
        case '[': // "[a: b]" has a mapping
            nodes += 2;
            break;
        case '?':
            nodes += is_apart ? 2 : 0;
            break;
        case '-':
            nodes += is_apart ? 1 : 0;
            break;
        case '\n':
        case '\r':
        case '{':
        case ':':
            ++nodes;
            break;
        default:
            break;
        }
    }
    return nodes;
}

} // namespace containerize

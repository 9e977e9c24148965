#include "util/utf8.h"

#include <simdjson.h>

namespace containerize {

bool is_utf8(std::string_view text) {
    return simdjson::validate_utf8(text);
}

} // namespace containerize

#include "wheel/names.h"

#include "core/text.h"

namespace containerize::wheel {

std::string normalised_name(std::string_view name) {
    std::string result;
    for (const char c : lower(name)) {
        const bool separates = c == '-' || c == '_' || c == '.';
        if (!separates || !result.ends_with('-')) result += separates ? '-' : c;
    }
    return result;
}

} // namespace containerize::wheel

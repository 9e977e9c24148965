#include "config/expand.h"

#include "core/variables.h"

#include <algorithm>

namespace containerize::config {

Result<std::string> expand(std::string_view text, const Lookup& lookup) {
    std::string home;
    if (text == "~" || text.starts_with("~/")) {
        home = "${HOME}" + std::string(text.substr(1));
        text = home;
    }
    std::string result;
    while (!text.empty()) {
        if (!text.starts_with('$')) {
            const auto end = std::min(text.find('$'), text.size());
            result += text.substr(0, end);
            text.remove_prefix(end);
            continue;
        }
        const auto named = variable_at(text);
        if (!named)
            return fail_input("invalid variable: '" + std::string(text) + "'", {}, {},
                              "Write variables as $NAME or ${NAME}.");
        const auto value = lookup(named->name);
        if (!value)
            return fail_input("the variable " + named->name + " is not set", {}, {},
                              "Set it, or choose another directory.");
        result += *value;
        text.remove_prefix(named->size);
    }
    return result;
}

} // namespace containerize::config

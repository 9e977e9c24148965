#include "inputs/build_options.h"

namespace containerize::inputs {

Result<Layout> parse_layout(std::string_view text) {
    if (text == "path") return Layout::path;
    if (text == "profile") return Layout::profile;
    return fail_input("unknown layout: '" + std::string(text) + "'", {}, {}, "Give path or profile.");
}

} // namespace containerize::inputs

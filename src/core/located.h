// A text of the user and its origin: "env.yml:4", "/etc/conda/.condarc:2", "CONDA_CHANNELS".
#pragma once

#include <string>

namespace containerize {

struct Located {
    std::string text, where = {};
};

} // namespace containerize

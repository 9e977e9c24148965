// What this machine allows: each thing that building or running needs is tried, not guessed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::install {

struct Finding {
    enum class Verdict {
        ok,
        note,    ///< works, but not as well as it could
        missing, ///< nothing can be built or run without it
    };
    std::string name; ///< "user namespaces"
    Verdict verdict = Verdict::ok;
    std::string found;  ///< what was found
    std::string advice; ///< what to do; empty where nothing need be done
};

/// Where `prefix` is given, also whether an installation can be made there.
std::vector<Finding> diagnose(const std::filesystem::path& prefix);

} // namespace containerize::install

// Diagnoses this machine by trying each feature that building or running needs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::diagnosis {

struct Finding {
    enum class Verdict {
        ok,
        note,    ///< works, but could work better
        missing, ///< nothing can be built or run without it
    };
    std::string name; ///< e.g. "user namespaces"
    Verdict verdict = Verdict::ok;
    std::string found;
    std::string advice = {}; ///< what to do; empty if nothing needs to be done
};

/// If `prefix` is not empty, also checks whether an installation can be made there. `default_python` is that
/// of the configuration, or empty.
std::vector<Finding> diagnose(const std::filesystem::path& prefix, const std::string& default_python);

/// Compares the programs of the installation at `prefix` with those in `libexec`.
Finding diagnose_programs(const std::filesystem::path& prefix, const std::filesystem::path& libexec);

} // namespace containerize::diagnosis

// Changes to the environment of wrapped programs, recorded at build time and applied at each launch without a
// shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace containerize::launch {

/// One change. "${prefix}" in a manifest's value stands for the installation's current path.
struct EnvironmentChange {
    enum class Kind { set, unset, prepend, append };
    Kind kind = Kind::set;
    std::string name;
    std::string value; ///< for prepend and append: ':'-separated elements, moved if present
    bool operator==(const EnvironmentChange&) const = default;
};

/// Replaces "${prefix}" in the changes of a manifest by `prefix`.
std::vector<EnvironmentChange> with_prefix(std::vector<EnvironmentChange> changes, std::string_view prefix);

/// The environment of a process, in order. Entries without '=' are kept as they are.
class Variables {
public:
    explicit Variables(const char* const* environment);

    /// Null if it is not set.
    [[nodiscard]] const char* get(std::string_view name) const;
    void set(std::string_view name, std::string_view value);
    void unset(std::string_view name);
    void apply(const std::vector<EnvironmentChange>& changes);
    /// For execve(); valid until the next change.
    [[nodiscard]] std::vector<char*> pointers();

private:
    [[nodiscard]] std::vector<std::string>::iterator find(std::string_view name);
    std::vector<std::string> entries_;
};

/// Puts `elements` before or after `path`. Those that `path` already has are moved, not repeated.
std::string with_path_elements(std::string_view path, std::string_view elements, bool in_front);

} // namespace containerize::launch

// Build directories on node-local storage.
#pragma once

#include "core/error.h"
#include "core/fd.h"

#include <filesystem>

namespace containerize {

/// A build directory on node-local storage, locked as long as it is in use. The destructor removes it; what a
/// killed run left is removed by the next one (`sweep_staging`).
class [[nodiscard]] Staging {
public:
    /// Makes it in `parent`; if that is empty, in the first of $TMPDIR, /tmp and /dev/shm that is not on a
    /// network filesystem and can be used.
    static Result<Staging> create(const std::filesystem::path& parent);
    Staging(Staging&&) noexcept;
    ~Staging();
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    /// Gives the directory a name that no sweep removes. Returns its path.
    std::filesystem::path keep();

private:
    Staging(std::filesystem::path path, Fd lock);
    std::filesystem::path path_;
    Fd lock_;
};

/// Removes this user's abandoned staging directories in `parent`; those in use stay.
void sweep_staging(const std::filesystem::path& parent);

} // namespace containerize

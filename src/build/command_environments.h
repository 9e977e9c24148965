// Environments for single commands (`containerize exec`), which are kept until they take too much space.
//
//   DIRECTORY/         mode 0700
//     .lock            held while environments are looked up, begun or removed
//     KEY-XXXXXX/      one environment; KEY is a digest of everything that decides what it contains
//       lock           locked exclusively by the build, then shared by each command that runs; its time is
//       that of
//                      the last use
//       about.json     what was asked for, to be shown
//       env/           the installation; the environment is complete as soon as this is one
//     .removed-KEY-*   what is left of one that is being removed
#pragma once

#include "core/error.h"
#include "util/file_lock.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace containerize::build {

/// Hexadecimal digits of a key.
inline constexpr std::size_t key_digits = 32;

using Time = std::chrono::system_clock::time_point;

struct CommandEnvironment {
    std::filesystem::path directory;
    std::string key;
    std::vector<std::string> packages; ///< as the user gave them, without secrets
    std::uint64_t bytes = 0;
    Time built, last_use;
    bool in_use = false; ///< or unknown, where it cannot be locked
};

/// The environments to remove, so that the others take at most `limit` bytes: those of which there is a newer
/// one with the same key, then the least recently used ones, but none in use. Returns their positions.
std::vector<std::size_t> environments_to_remove(const std::vector<CommandEnvironment>& all,
                                                std::uint64_t limit);

/// An environment that is in use, or being built by us. It is not removed as long as this object, or a
/// descriptor made from its lock, is open.
struct [[nodiscard]] ClaimedEnvironment {
    std::filesystem::path directory;
    FileLock lock;
    bool complete = false; ///< otherwise it is to be built

    [[nodiscard]] std::filesystem::path prefix() const { return directory / "env"; }
};

struct RemovedEnvironments {
    std::uint64_t number = 0, bytes = 0;
    std::uint64_t in_use = 0; ///< these were kept
};

class CommandEnvironments {
public:
    explicit CommandEnvironments(std::filesystem::path directory) : directory_(std::move(directory)) {}

    /// Returns a complete environment, or, if there is none or `anew`, a new directory to build it in. Waits
    /// while another process builds it. Makes what is missing of the directory, and refuses it (Fault::input)
    /// if another user could replace it.
    [[nodiscard]] Result<ClaimedEnvironment> claim(const std::string& key,
                                                   const std::vector<std::string>& packages, bool anew) const;
    /// To be called after the build: others may now use the environment, too. Removes environments for which
    /// there is no room.
    [[nodiscard]] Status share(ClaimedEnvironment& claimed, std::uint64_t limit) const;

    /// The complete ones, the last used first. None if others could replace them.
    [[nodiscard]] Result<std::vector<CommandEnvironment>> list() const;
    /// Removes those that were not used for `unused`, and what killed builds left.
    [[nodiscard]] Result<RemovedEnvironments> remove(std::chrono::hours unused) const;

private:
    [[nodiscard]] Status make() const;
    [[nodiscard]] bool exists() const;
    [[nodiscard]] Result<FileLock> lock() const;
    // For these, the lock must be held.
    [[nodiscard]] std::vector<std::filesystem::path> directories() const;
    [[nodiscard]] std::vector<CommandEnvironment> all() const;
    [[nodiscard]] Result<ClaimedEnvironment> begin(const std::string& key,
                                                   const std::vector<std::string>& packages) const;
    void sweep() const;

    std::filesystem::path directory_;
};

} // namespace containerize::build

// Combines what the user typed with the configuration.
#pragma once

#include "base/base_image.h"
#include "build/build.h"
#include "conda/cache_directory.h"
#include "config/configuration.h"
#include "core/error.h"
#include "launch/engine.h"
#include "util/cache_limits.h"
#include "util/process.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace containerize::cli {

/// Warns if a typed value is ignored because the configuration forces another.
class Configured {
public:
    /// With the configuration for this process's environment.
    static Result<Configured> read();

    /// `typed` is empty if the user did not give the option.
    [[nodiscard]] std::string text(config::Key key, const std::string& typed) const;
    /// The typed or forced engine; one that is only configured is in site_settings().
    [[nodiscard]] Result<std::optional<launch::Engine>> engine(const std::string& typed) const;
    /// 0: choose by the CPUs and memory available.
    [[nodiscard]] unsigned jobs(unsigned typed) const;
    [[nodiscard]] bool use_conda_config(bool typed_no_config) const;
    [[nodiscard]] bool kernel_mount() const { return config_.flag(config::Key::kernel_mount); }
    /// Empty if the configuration forces its own.
    [[nodiscard]] std::vector<std::string> typed_wrapper_paths(const std::vector<std::string>& typed) const;
    /// Each item of a list, as written, and where it was written.
    [[nodiscard]] std::vector<Located> written(config::Key key) const;
    /// All settings but those of the cache, which can fail.
    [[nodiscard]] inputs::SiteSettings site_settings(bool wrapper_paths_typed) const;
    /// Applies a configured umask to this process, and denies other users write access in any case. Returns
    /// the effective umask.
    [[nodiscard]] mode_t umask_bits() const;

    /// Creates a configured directory if it is missing.
    [[nodiscard]] Result<std::filesystem::path> staging(const std::string& typed) const;
    /// Empty if $CONTAINERIZE_CACHE decides, or nothing is set.
    [[nodiscard]] Result<Located> cache() const;
    /// Of the packages in the cache.
    [[nodiscard]] Result<CacheLimits> cache_limits() const;
    [[nodiscard]] Result<std::vector<conda::SiteCache>> site_caches() const;
    [[nodiscard]] Result<std::filesystem::path> prefix() const;
    /// Where `exec` keeps environments: by default in the cache at `cache`, or in the user's own cache if
    /// others could replace what is there.
    [[nodiscard]] Result<std::filesystem::path> exec_environments(const std::filesystem::path& cache) const;
    /// Limit for their total size, in bytes.
    [[nodiscard]] Result<std::uint64_t> exec_limit() const;
    /// Where base images are stored, and how they are fetched and made.
    [[nodiscard]] Result<base::Options> bases() const;

private:
    Configured(config::Configuration configuration, Environment environment)
        : config_(std::move(configuration)), environment_(std::move(environment)) {}
    void warn_of_force(config::Key key, const std::string& typed) const;

    config::Configuration config_;
    Environment environment_;
};

} // namespace containerize::cli

// What counts: of what the user typed, and of what the configuration says.
#pragma once

#include "base/base.h"
#include "config/config.h"
#include "install/build.h"
#include "runtime/engine.h"
#include "util/error.h"
#include "util/process.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace containerize::cli {

/// Warns where what was typed does not count, because the configuration forces another value.
class Configured {
public:
    Configured(config::Configuration configuration, Environment environment)
        : config_(std::move(configuration)), environment_(std::move(environment)) {}

    /// `typed` is empty where the user did not give the option.
    [[nodiscard]] std::string text(config::Key key, const std::string& option,
                                   const std::string& typed) const;
    /// What was typed or is forced; what else is configured is for new installations (site_settings).
    [[nodiscard]] Result<std::optional<runtime::Engine>> engine(const std::string& typed) const;
    /// 0: by what the machine has.
    [[nodiscard]] unsigned jobs(unsigned typed) const;
    [[nodiscard]] bool use_conda_config(bool typed_no_config) const;
    [[nodiscard]] bool kernel_mount() const { return config_.flag(config::Key::kernel_mount); }
    /// None where the configuration forces others.
    [[nodiscard]] std::vector<std::string> typed_wrapper_paths(const std::vector<std::string>& typed) const;
    /// Each item of a list as it is written, and where.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> written(config::Key key) const;
    /// All but the cache, which may be an error.
    [[nodiscard]] install::SiteSettings site_settings(bool wrapper_paths_typed) const;
    /// Sets the configured one for this process, if there is one; the umask that it has then.
    [[nodiscard]] mode_t umask_bits() const;

    /// A configured directory is made if it is not there.
    [[nodiscard]] Result<std::filesystem::path> staging(const std::string& typed) const;
    /// Empty where $CONTAINERIZE_CACHE, or nobody, says.
    [[nodiscard]] Result<conda::Located> cache() const;
    [[nodiscard]] Result<std::filesystem::path> prefix() const;
    /// Where base images are, and how they are reached and made.
    [[nodiscard]] Result<base::Options> bases() const;

private:
    void warn_of_force(config::Key key, const std::string& typed) const;

    config::Configuration config_;
    Environment environment_;
};

} // namespace containerize::cli

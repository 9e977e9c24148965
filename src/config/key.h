// The settings that a configuration can have, and what is a good value of each.
#pragma once

#include "util/error.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace containerize::config {

enum class Key {
    prefix,
    channels,
    conda_config,
    cache,
    staging,
    base,
    auto_base,
    bases,
    base_stores,
    base_limit,
    registries,
    compression,
    block_size,
    jobs,
    max_jobs,
    installer,
    wrapper_paths,
    binds,
    host_profiles,
    engine,
    prefetch,
    stage,
    kernel_mount,
    environment,
    umask
};
inline constexpr std::size_t number_of_keys = 25;

enum class Kind {
    text,
    directory, ///< a text in which variables are expanded when it is used
    flag,      ///< "true" or "false"
    number,
    list,
    map
};

struct KeyInfo {
    Key key;
    std::string_view name;
    Kind kind;
    std::string_view standard; ///< the value where nobody gives one; may be empty
    /// Of the value, of each item or of each entry; the error has no place yet.
    Status (*check)(const std::string& value);
};

const std::array<KeyInfo, number_of_keys>& all_keys();
const KeyInfo& info(Key key);
/// Null if there is no such key.
const KeyInfo* find_key(std::string_view name);

/// "true", "yes", "on" and their opposites, in any case.
std::optional<bool> parse_flag(std::string_view text);
/// The bits of a umask in octal that leaves the user's own permissions alone.
std::optional<unsigned> parse_umask(std::string_view text);

} // namespace containerize::config

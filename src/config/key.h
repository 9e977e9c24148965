// The settings that a configuration can have, and their valid values.
#pragma once

#include "core/error.h"
#include "core/variable_table.h"
#include "core/variables.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace containerize::config {

enum class Key {
    prefix,
    channels,
    mirrors,
    conda_config,
    cache,
    cache_limit,
    cache_age,
    site_caches,
    exec_environments,
    exec_limit,
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
    python,
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
inline constexpr std::size_t number_of_keys = 32;

enum class Kind {
    text,
    directory, ///< a text whose variables are expanded on use
    flag,      ///< "true" or "false"
    number,
    list,
    map
};

struct KeyInfo {
    Key key;
    std::string_view name;
    Kind kind;
    /// Checks the value, an item or an entry's value. The error has no location yet.
    Status (*check)(const std::string& value);
    std::string_view standard = {};  ///< default; may be empty
    std::string_view otherwise = {}; ///< what happens without a value, if there is no default
    std::string_view option = {};    ///< the option that sets the same for one build; may be empty
    Variable variable = {};          ///< the variable that does; may be none
    std::string_view choices = {}; ///< separated by commas; "..." at the end: other values are possible, too
    std::string_view description = {};
};

const std::array<KeyInfo, number_of_keys>& all_keys();
const KeyInfo& info(Key key);
/// Returns null if there is no such key.
const KeyInfo* find_key(std::string_view name);

/// Accepts "true", "yes", "on" and their opposites, ignoring case.
std::optional<bool> parse_flag(std::string_view text);
/// Parses a number of bytes: "500M", "10G". The units are powers of 1024.
Result<std::uint64_t> parse_size(std::string_view text);
/// The same, or nothing for "none".
Result<std::optional<std::uint64_t>> parse_limit(std::string_view text);
/// Parses a number of days: "90d". Nothing for "none".
Result<std::optional<std::chrono::days>> parse_age(std::string_view text);
/// Parses "PREFIX=URL", both of which are addresses without logins; nothing for other texts.
std::optional<std::pair<std::string, std::string>> parse_mirror(std::string_view text);
/// Parses an octal umask. Refuses one that restricts the user's own permissions.
std::optional<unsigned> parse_umask(std::string_view text);

} // namespace containerize::config

#include "cli/configured.h"

#include "conda/cache_directory.h"
#include "core/filesystem.h"
#include "core/ownership.h"
#include "core/resources.h"
#include "util/log.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

namespace containerize::cli {

namespace {

using config::Key;

std::vector<Located> located(const std::vector<config::Setting>& settings) {
    std::vector<Located> list;
    list.reserve(settings.size());
    for (const auto& setting : settings)
        list.push_back({.text = setting.value, .where = setting.where});
    return list;
}

/// Refuses a directory, for example one named after this user, that another user created.
Status check_owner(const fs::path& directory, const std::string& what, const std::string& where,
                   const std::string& hint) {
    if (!has_foreign_owner(directory.string())) return {};
    return fail_input("the " + what + " " + directory.string() + " belongs to another user",
                      "that user created it in a directory that everybody can write to", where, hint);
}

} // namespace

Result<Configured> Configured::read() {
    auto environment = current_environment();
    auto configuration = TRY(config::Configuration::read(environment));
    return Configured(std::move(configuration), std::move(environment));
}

void Configured::warn_of_force(Key key, const std::string& typed) const {
    const auto& value = config_[key];
    std::string forced;
    for (const auto& setting : value.settings)
        forced += (forced.empty() ? "" : ", ") + setting.value;
    log::warn(fmt::format("{} is ignored: `{}: {}` is forced by {}", typed, config::info(key).name, forced,
                          value.forced_where));
}

std::string Configured::text(Key key, const std::string& typed) const {
    auto value = config_.text(key);
    if (typed.empty() || typed == value) return value;
    if (!config_[key].forced) return typed;
    warn_of_force(key, std::string(config::info(key).option) + " " + typed);
    return value;
}

Result<std::optional<launch::Engine>> Configured::engine(const std::string& typed) const {
    if (typed.empty() && !config_[Key::engine].forced) return std::nullopt;
    return launch::parse_engine(text(Key::engine, typed));
}

unsigned Configured::jobs(unsigned typed) const {
    const auto limit = config_.number(Key::max_jobs);
    const auto chosen = text(Key::jobs, typed == 0 ? "" : std::to_string(typed));
    const auto wanted = chosen.empty() ? 0U : static_cast<unsigned>(std::stoul(chosen));
    if (limit != 0 && wanted == typed && typed > limit)
        log::warn(fmt::format("--jobs {} exceeds `max_jobs: {}` in {}", typed, limit,
                              config_[Key::max_jobs].settings.front().where));
    return wanted;
}

bool Configured::use_conda_config(bool typed_no_config) const {
    const bool value = config_.flag(Key::conda_config);
    if (!typed_no_config || !value) return value;
    if (!config_[Key::conda_config].forced) return false;
    warn_of_force(Key::conda_config, "--no-config");
    return true;
}

std::vector<std::string> Configured::typed_wrapper_paths(const std::vector<std::string>& typed) const {
    if (typed.empty() || !config_[Key::wrapper_paths].forced) return typed;
    warn_of_force(Key::wrapper_paths, "--wrapper-paths");
    return {};
}

inputs::SiteSettings Configured::site_settings(bool wrapper_paths_typed) const {
    inputs::SiteSettings site;
    const auto& channels = config_[Key::channels];
    site.channels = located(channels.settings);
    site.first_channels = located(channels.prepends);
    site.last_channels = located(channels.appends);
    site.channels_forced = channels.forced;
    for (auto& channel : located(config_.list(Key::channels)))
        if (channel.where.starts_with(config::machine_file().string() + ":"))
            site.machine_channels.push_back(std::move(channel));
    for (const auto& setting : config_.list(Key::mirrors))
        if (auto mirror = config::parse_mirror(setting.value))
            site.mirrors.push_back({.prefix = std::move(mirror->first), .url = std::move(mirror->second)});
    const auto& paths = config_[Key::wrapper_paths];
    for (const auto* part : {&paths.prepends, &paths.settings, &paths.appends})
        if (part != &paths.settings || paths.forced || !wrapper_paths_typed)
            for (const auto& path : *part)
                site.wrapper_paths.push_back(path.value);
    for (const auto& entry : config_[Key::environment].settings)
        (entry.forced ? site.forced_environment : site.environment)
            .push_back({launch::EnvironmentChange::Kind::set, entry.name, entry.value});
    site.max_jobs = config_.number(Key::max_jobs);
    return site;
}

mode_t Configured::umask_bits() const {
    const mode_t of_shell = umask(0);
    // An installation to which all users can write would be refused by launches (why_foreign).
    const mode_t bits = config::parse_umask(config_.text(Key::umask)).value_or(of_shell) | S_IWOTH;
    umask(bits);
    return bits;
}

std::vector<Located> Configured::written(Key key) const {
    return located(config_.list(key));
}

Result<fs::path> Configured::staging(const std::string& typed) const {
    const auto& value = config_[Key::staging];
    std::error_code failed;
    if (!typed.empty() && !value.forced) {
        if (fs::is_directory(typed, failed)) return fs::path(typed);
        return fail_input("the staging directory does not exist", {}, typed,
                          "Give --tmpdir an existing directory.");
    }
    auto directory = config_.directory(Key::staging, environment_);
    if (!directory || directory->empty()) return directory;
    if (!typed.empty() && fs::path(typed) != *directory) warn_of_force(Key::staging, "--tmpdir " + typed);
    const auto& where = value.settings.front().where;
    if (const auto made = make_directories(*directory); !made)
        return fail_input("cannot create the staging directory " + directory->string(), made.error().why,
                          where);
    TRY(check_owner(*directory, "staging directory", where, "Choose another directory with --tmpdir."));
    return directory;
}

Result<Located> Configured::cache() const {
    const auto& value = config_[Key::cache];
    const auto of_user = variable(environment_, "CONTAINERIZE_CACHE");
    if (value.settings.empty() || (!of_user.empty() && !value.forced)) return Located{};
    auto directory = TRY(config_.directory(Key::cache, environment_));
    if (!of_user.empty() && of_user != directory.string())
        warn_of_force(Key::cache, "CONTAINERIZE_CACHE=" + of_user);
    return Located{.text = directory.string(), .where = value.settings.front().where};
}

Result<CacheLimits> Configured::cache_limits() const {
    return CacheLimits{.bytes = TRY(config::parse_limit(config_.text(Key::cache_limit))),
                       .age = TRY(config::parse_age(config_.text(Key::cache_age)))};
}

Result<std::vector<conda::SiteCache>> Configured::site_caches() const {
    const auto directories = TRY(config_.directories(Key::site_caches, environment_));
    const auto settings = config_.list(Key::site_caches);
    struct stat root {};
    if (stat("/", &root) != 0) return fail_errno("cannot examine the directory", "/");
    std::vector<conda::SiteCache> caches;
    for (std::size_t i = 0; i < directories.size(); ++i) {
        const auto& where = settings[i].where; // "file:line"
        struct stat file {};
        if (stat(where.substr(0, where.rfind(':')).c_str(), &file) != 0)
            return fail_errno("cannot read the configuration", where);
        // Where root is not mapped, all other users have one number, which is not to be trusted.
        const bool is_known = file.st_uid == 0 || file.st_uid != root.st_uid;
        caches.push_back({.directory = directories[i], .owner = is_known ? file.st_uid : geteuid()});
    }
    return caches;
}

Result<base::Options> Configured::bases() const {
    base::Options options;
    auto configured = TRY(config_.directory(Key::bases, environment_));
    options.store = TRY(base::store_directory(environment_, configured));
    TRY(check_owner(options.store, "store of base images", {},
                    "Set CONTAINERIZE_BASES to a directory of your own."));
    options.site_stores = TRY(config_.directories(Key::base_stores, environment_));
    for (const auto& setting : config_.list(Key::registries)) {
        const auto equals = setting.value.find('=');
        auto url = setting.value.substr(equals + 1);
        while (url.ends_with('/'))
            url.pop_back();
        options.registries.push_back({.registry = setting.value.substr(0, equals), .url = std::move(url)});
    }
    options.limit = std::uint64_t{config_.number(Key::base_limit)} << 30U;
    options.writer.compression = TRY(image::parse_compression(config_.text(Key::compression)));
    options.writer.block_size = TRY(image::parse_block_size(config_.text(Key::block_size)));
    const auto wanted = jobs(0) > 0 ? jobs(0) : default_jobs(available_resources());
    const unsigned limit = config_.number(Key::max_jobs);
    options.writer.jobs = limit == 0 ? wanted : std::min(wanted, limit);
    options.environment = environment_;
    return options;
}

Result<fs::path> Configured::exec_environments(const fs::path& cache) const {
    auto directory = TRY(config_.directory(Key::exec_environments, environment_));
    if (!directory.empty()) return directory;
    return conda::environments_in(conda::places_in(cache, environment_).environments);
}

Result<std::uint64_t> Configured::exec_limit() const {
    return config::parse_size(config_.text(Key::exec_limit));
}

Result<fs::path> Configured::prefix() const {
    return config_.directory(Key::prefix, environment_);
}

} // namespace containerize::cli

#include "build/command_environments.h"
#include "cli/command.h"
#include "cli/configured.h"
#include "conda/cache_directory.h"
#include "conda/package_cache.h"
#include "config/key.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/printable.h"
#include "core/text.h"
#include "environments/image_cache.h"
#include "packages/package_images.h"
#include "util/cache_limits.h"
#include "util/progress.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::cli {

namespace {

using nlohmann::json;

struct CacheArguments {
    bool as_json = false;
    bool all = false;
    std::optional<unsigned> days;
    std::string size;
};

constexpr unsigned standard_days = 30;

Result<fs::path> cache_of(const Configured& configured) {
    auto cache = TRY(configured.cache());
    return conda::cache_directory(current_environment(), cache);
}

/// The cache, and the environments, which may be elsewhere.
struct Places {
    conda::CachePlaces cache;
    build::CommandEnvironments environments;
    CacheLimits limits;
    std::vector<conda::SiteCache> site_caches; ///< but the cache itself, for those who maintain it
};

Result<Places> places_in_use() {
    catch_interrupts(); // another process may have locked the environments for a moment
    const auto configured = TRY(Configured::read());
    auto directory = TRY(cache_of(configured));
    auto environments = TRY(configured.exec_environments(directory));
    Places places{.cache = conda::places_in(directory, current_environment()),
                  .environments = build::CommandEnvironments(std::move(environments)),
                  .limits = TRY(configured.cache_limits()),
                  .site_caches = TRY(configured.site_caches())};
    if (!environments::is_of_site(directory, places.site_caches)) return places;
    // It is filled for others, whose use is not noticed here.
    places.cache.images = std::move(directory);
    places.limits = {};
    places.site_caches.clear();
    return places;
}

std::vector<packages::OthersImages> images_of(const conda::SiteCache& cache) {
    std::vector<packages::OthersImages> images;
    for (auto& directory : conda::images_of_site(cache).directories)
        images.push_back({.directory = std::move(directory), .owner = cache.owner});
    return images;
}

/// "2026-01-31T12:00:00Z"
std::string utc(build::Time time) {
    return fmt::format("{:%FT%TZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

std::string local(build::Time time) {
    return fmt::format("{:%F %H:%M}", fmt::localtime(std::chrono::system_clock::to_time_t(time)));
}

json as_json(const build::CommandEnvironment& environment) {
    return {{"prefix", (environment.directory / "env").string()},
            {"bytes", environment.bytes},
            {"last_use", utc(environment.last_use)},
            {"in_use", environment.in_use},
            {"packages", environment.packages}};
}

std::string shown(const std::vector<std::string>& packages) {
    std::vector<std::string> words;
    for (const auto& one : packages)
        words.push_back(shell_quoted(one));
    return printable_line(joined(words, " "));
}

Result<int> run_list(const CacheArguments& arguments) {
    const auto places = TRY(places_in_use());
    const auto list = TRY(places.environments.list());
    json all = json::array();
    for (const auto& one : list) {
        all.push_back(as_json(one));
        if (!arguments.as_json)
            fmt::print("{:>9}  {:16}  {}\n", human_bytes(one.bytes),
                       one.in_use ? "in use" : local(one.last_use), shown(one.packages));
    }
    if (arguments.as_json) fmt::print("{}\n", all.dump(2, ' ', false, json::error_handler_t::replace));
    return 0;
}

std::uint64_t bytes_of(const std::vector<build::CommandEnvironment>& environments) {
    std::uint64_t bytes = 0;
    for (const auto& one : environments)
        bytes += one.bytes;
    return bytes;
}

json as_json(const auto& use) {
    return {{"files", use.files}, {"bytes", use.bytes}};
}

packages::ImagesUse use_of(const conda::SiteCache& cache) {
    packages::ImagesUse all;
    for (const auto& images : images_of(cache)) {
        const auto use = packages::images_in(images);
        all.files += use.files;
        all.bytes += use.bytes;
    }
    return all;
}

packages::ImagesUse sum_of(const std::vector<CachedFile>& files) {
    packages::ImagesUse sum{.files = files.size()};
    for (const auto& file : files)
        sum.bytes += file.bytes;
    return sum;
}

json as_json(const CacheLimits& limits, const packages::ImagesUse& counted) {
    auto shown = as_json(counted);
    shown["max_bytes"] = limits.bytes ? json(*limits.bytes) : json();
    shown["max_days"] = limits.age ? json(limits.age->count()) : json();
    return shown;
}

json as_json(const std::vector<conda::SiteCache>& caches) {
    auto shown = json::array();
    for (const auto& cache : caches) {
        const auto obstacle = conda::images_of_site(cache).obstacle;
        shown.push_back({{"directory", cache.directory.string()},
                         {"images", as_json(use_of(cache))},
                         {"obstacle", obstacle.empty() ? json() : json(obstacle)}});
    }
    return shown;
}

void print(const char* title, const auto& use) {
    fmt::print("{:13} {} in {}\n", title, human_bytes(use.bytes), counted(use.files, "file"));
}

void print(const CacheLimits& limits, const packages::ImagesUse& counted_use) {
    if (!limits.bytes && !limits.age) return;
    const auto size = limits.bytes ? "at most " + human_bytes(*limits.bytes) : "any size";
    const auto age =
        limits.age ? "used in the last " + counted(static_cast<std::uint64_t>(limits.age->count()), "day")
                   : "however old";
    fmt::print("{:13} {}, {}; now {} in {} of yours\n", "Limits", size, age, human_bytes(counted_use.bytes),
               counted(counted_use.files, "package file"));
}

void print(const std::vector<conda::SiteCache>& caches) {
    for (const auto& cache : caches) {
        const auto images = use_of(cache);
        const auto obstacle = conda::images_of_site(cache).obstacle;
        fmt::print("{:13} {}\n", "Site's cache", cache.directory.string());
        if (obstacle.empty())
            print("", images);
        else
            fmt::print("{:13} not used: {}\n", "", obstacle);
    }
}

Result<int> run_directory() {
    const auto configured = TRY(Configured::read());
    const auto directory = TRY(cache_of(configured));
    fmt::print("{}\n", directory.string());
    return 0;
}

Result<int> run_info(const CacheArguments& arguments) {
    const auto places = TRY(places_in_use());
    const auto& directory = places.cache.shared;
    auto info = TRY(conda::cache_info(places.cache));
    const auto images = packages::images_in(conda::images_in(places.cache.images));
    const auto limited = sum_of(environments::limited_files(places.cache));
    const auto list = TRY(places.environments.list());
    if (arguments.as_json) {
        const json about = {{"directory", directory.string()},
                            {"packages", as_json(info.packages)},
                            {"images", as_json(images)},
                            {"repodata", as_json(info.repodata)},
                            {"uv", as_json(info.uv)},
                            {"limited", as_json(places.limits, limited)},
                            {"site_caches", as_json(places.site_caches)},
                            {"environments", {{"number", list.size()}, {"bytes", bytes_of(list)}}}};
        fmt::print("{}\n", about.dump(2, ' ', false, json::error_handler_t::replace));
        return 0;
    }
    fmt::print("{:13} {}\n", "Directory", directory.string());
    print("Packages", info.packages);
    print("Images", images);
    print("Package lists", info.repodata);
    print("uv", info.uv);
    fmt::print("{:13} {} in {}\n", "Environments", human_bytes(bytes_of(list)),
               counted(list.size(), "environment"));
    print(places.limits, limited);
    print(places.site_caches);
    return 0;
}

Result<int> clean_environments(const build::CommandEnvironments& environments, std::chrono::hours unused) {
    const auto removed = TRY(environments.remove(unused));
    if (removed.number > 0)
        fmt::print("Removed {} of `containerize exec`, {}\n", counted(removed.number, "environment"),
                   human_bytes(removed.bytes));
    if (removed.in_use > 0) fmt::print("Kept {} in use\n", counted(removed.in_use, "environment"));
    return 0;
}

void say_if_in_use(bool in_use) {
    if (in_use)
        fmt::print(
            "Kept what was used in the last day, because a build is running or files cannot be locked\n");
}

Result<int> clean_unused(const Places& places, std::chrono::hours unused) {
    auto removed = TRY(conda::clean_cache(places.cache, unused));
    const auto [images, in_use] = TRY(packages::remove_images(conda::images_in(places.cache.images), unused));
    fmt::print("Removed {} from {}\n",
               human_bytes(removed.packages.bytes + removed.repodata.bytes + removed.uv.bytes + images.bytes),
               places.cache.shared.string());
    if (const auto kept = removed.packages.foreign + removed.repodata.foreign; kept > 0)
        fmt::print("Kept {} that containerize did not make\n", counted(kept, "file"));
    say_if_in_use(in_use);
    return clean_environments(places.environments, unused);
}

Result<int> clean_largest(const Places& places, const std::string& size) {
    const auto limit = TRY(config::parse_size(size));
    const auto removed = TRY(environments::apply_limits(places.cache, {.bytes = limit, .age = {}}));
    fmt::print("Removed {} in {} from {}\n", human_bytes(removed.bytes),
               counted(removed.files, "package file"), places.cache.shared.string());
    say_if_in_use(removed.in_use);
    return 0;
}

Result<int> run_clean(const CacheArguments& arguments) {
    const auto places = TRY(places_in_use());
    constexpr auto day = std::chrono::hours(24);
    const auto unused = arguments.all ? std::chrono::hours(0) : arguments.days.value_or(standard_days) * day;
    const bool by_age = arguments.size.empty() || arguments.days;
    if (by_age) TRY(clean_unused(places, unused));
    return arguments.size.empty() ? 0 : clean_largest(places, arguments.size);
}

void print_verified(const packages::Verified& verified, const char* about_damaged) {
    for (const auto& damaged : verified.damaged)
        fmt::print("{}: {}\n", about_damaged, damaged.string());
}

Result<int> run_verify() {
    const auto places = TRY(places_in_use());
    const auto jobs = std::thread::hardware_concurrency();
    auto all = TRY(packages::verify_images(conda::images_in(places.cache.images), jobs));
    print_verified(all, "Removed, because it is damaged");
    for (const auto& cache : places.site_caches)
        for (const auto& images : images_of(cache)) {
            auto verified = TRY(packages::verify_images(images, jobs));
            print_verified(verified, "Damaged in the site's cache");
            all.good.files += verified.good.files;
            all.good.bytes += verified.good.bytes;
            std::ranges::move(verified.damaged, std::back_inserter(all.damaged));
        }
    fmt::print("{} in {} as they were made\n", human_bytes(all.good.bytes), counted(all.good.files, "image"));
    return all.damaged.empty() ? 0 : 1;
}

} // namespace

void add_cache(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand(
        "cache", "Manage downloaded and packed packages, package lists, and environments of "
                 "`containerize exec`");
    command->require_subcommand(1);
    const auto arguments = std::make_shared<CacheArguments>();
    on(*command->add_subcommand("dir", "Print the directory of the cache"), call, run_directory);
    auto* info = command->add_subcommand("info", "Show the size of the cache");
    info->add_flag("--json", arguments->as_json, json_description);
    on(*info, call, [arguments] { return run_info(*arguments); });
    auto* list =
        command->add_subcommand("list", "List the environments of `containerize exec`, the last used first");
    list->add_flag("--json", arguments->as_json, json_description);
    on(*list, call, [arguments] { return run_list(*arguments); });
    on(*command->add_subcommand("verify",
                                "Compare package images with their digests, and remove damaged ones. "
                                "Those of a site's cache are only shown"),
       call, run_verify);
    auto* clean = command->add_subcommand(
        "clean", "Remove files that were not used for some time, or the least recently used packages");
    clean->add_option("--unused-for", arguments->days, "Number of days without use")
        ->type_name("DAYS")
        ->default_str(std::to_string(standard_days))
        ->check(CLI::Range(1U, 36500U));
    auto* size =
        clean
            ->add_option("--max-size", arguments->size,
                         "Remove packages until yours take at most this size, such as 20G. Nothing else "
                         "is removed unless --unused-for is given, too")
            ->type_name("SIZE");
    clean->add_flag("--all", arguments->all, "Remove everything")->excludes("--unused-for")->excludes(size);
    on(*clean, call, [arguments] { return run_clean(*arguments); });
}

} // namespace containerize::cli

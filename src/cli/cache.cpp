#include "build/command_environments.h"
#include "cli/command.h"
#include "cli/configured.h"
#include "conda/cache_directory.h"
#include "conda/package_cache.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/printable.h"
#include "core/text.h"
#include "packages/package_images.h"
#include "util/progress.h"

#include <memory>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::cli {

namespace {

using nlohmann::json;

struct CacheArguments {
    bool as_json = false;
    bool all = false;
    unsigned days = 30;
};

Result<fs::path> cache_of(const Configured& configured) {
    auto cache = TRY(configured.cache());
    return conda::cache_directory(current_environment(), cache);
}

Result<fs::path> directory_in_use() {
    const auto configured = TRY(Configured::read());
    return cache_of(configured);
}

/// The cache, and the environments, which may be elsewhere.
struct Places {
    fs::path directory;
    build::CommandEnvironments environments;
};

Result<Places> places_in_use() {
    catch_interrupts(); // another process may have locked the environments for a moment
    const auto configured = TRY(Configured::read());
    auto directory = TRY(cache_of(configured));
    auto environments = TRY(configured.exec_environments(directory));
    return Places{.directory = std::move(directory),
                  .environments = build::CommandEnvironments(std::move(environments))};
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

void print(const char* title, const auto& use) {
    fmt::print("{:13} {} in {}\n", title, human_bytes(use.bytes), counted(use.files, "file"));
}

Result<int> run_directory() {
    auto directory = TRY(directory_in_use());
    fmt::print("{}\n", directory.string());
    return 0;
}

Result<int> run_info(const CacheArguments& arguments) {
    const auto [directory, environments] = TRY(places_in_use());
    auto info = TRY(conda::cache_info(directory));
    const auto images = packages::images_in(conda::images_in(directory));
    const auto list = TRY(environments.list());
    if (arguments.as_json) {
        const json about = {{"directory", directory.string()},
                            {"packages", as_json(info.packages)},
                            {"images", as_json(images)},
                            {"repodata", as_json(info.repodata)},
                            {"uv", as_json(info.uv)},
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

Result<int> run_clean(const CacheArguments& arguments) {
    const auto [directory, environments] = TRY(places_in_use());
    constexpr auto day = std::chrono::hours(24);
    const auto unused = arguments.all ? std::chrono::hours(0) : arguments.days * day;
    auto removed = TRY(conda::clean_cache(directory, unused));
    const auto images = TRY(packages::remove_images(conda::images_in(directory), unused));
    fmt::print("Removed {} from {}\n",
               human_bytes(removed.packages.bytes + removed.repodata.bytes + removed.uv.bytes + images.bytes),
               directory.string());
    if (const auto kept = removed.packages.foreign + removed.repodata.foreign; kept > 0)
        fmt::print("Kept {} that containerize did not make\n", counted(kept, "file"));
    return clean_environments(environments, unused);
}

Result<int> run_verify() {
    auto directory = TRY(directory_in_use());
    const auto verified =
        TRY(packages::verify_images(conda::images_in(directory), std::thread::hardware_concurrency()));
    for (const auto& damaged : verified.damaged)
        fmt::print("Removed, because it is damaged: {}\n", damaged.string());
    fmt::print("{} in {} as they were made\n", human_bytes(verified.good.bytes),
               counted(verified.good.files, "image"));
    return verified.damaged.empty() ? 0 : 1;
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
                                "Compare package images with their digests, and remove damaged ones"),
       call, run_verify);
    auto* clean = command->add_subcommand("clean", "Remove files that were not used for some time");
    clean->add_option("--unused-for", arguments->days, "Number of days without use")
        ->type_name("DAYS")
        ->capture_default_str()
        ->check(CLI::Range(1U, 36500U));
    clean->add_flag("--all", arguments->all, "Remove everything")->excludes("--unused-for");
    on(*clean, call, [arguments] { return run_clean(*arguments); });
}

} // namespace containerize::cli

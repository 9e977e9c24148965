// stats: shows what the server of a live session has done.
#include "cli/command.h"
#include "cli/installation.h"
#include "core/filesystem.h"
#include "manifest/manifest.h"
#include "util/json.h"
#include "util/progress.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::cli {

namespace {

using nlohmann::json;

void print(const json& statistics) {
    const auto number = [](const json& value) { return value.get<std::uint64_t>(); };
    std::uint64_t requests = 0;
    std::string kinds;
    for (const auto& [kind, count] : statistics.at("requests").items()) {
        requests += number(count);
        kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", human_count(number(count)), kind);
    }
    fmt::print("Requests      {}: {}\n", human_count(requests), kinds);
    fmt::print("Image         {} read in {} reads\n", human_bytes(number(statistics.at("bytes_read"))),
               human_count(number(statistics.at("reads"))));
    const auto wanted = number(statistics.at("blocks_wanted"));
    const auto hits = wanted - std::min(wanted, number(statistics.at("blocks_loaded")));
    fmt::print("Cache         {} of {} blocks were in the cache\n", human_count(hits), human_count(wanted));
    const auto& prefetch = statistics.at("prefetch");
    fmt::print(
        "Read ahead    {} in {} reads; {} of it used, {} dropped unused; {} blocks decompressed ahead\n",
        human_bytes(number(prefetch.at("bytes"))), human_count(number(prefetch.at("reads"))),
        human_bytes(number(prefetch.at("used"))), human_bytes(number(prefetch.at("dropped"))),
        human_count(number(prefetch.at("blocks_decompressed"))));
}

Result<int> run_stats(const ShowArguments& arguments) {
    auto prefix = TRY(manifest::resolve_installation(arguments.directory));
    const auto session = live_session(prefix);
    if (!session)
        return fail({.what = "this installation has no session",
                     .why = "none of its programs runs on this node for this user",
                     .where = prefix.string(),
                     .hint = "Start a program. Its session stays for some minutes after the program ends."});
    auto answer = TRY(launch::request_statistics(*session, prefix.string()));
    const auto statistics = parse_json_quietly(answer);
    if (statistics.is_discarded())
        return fail({.what = "the session's answer cannot be read", .where = prefix.string()});
    if (arguments.as_json)
        fmt::print("{}\n", statistics.dump(2));
    else
        print(statistics);
    return 0;
}

} // namespace

void add_stats(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("stats", "Show statistics of the file server of an installation");
    const auto arguments = std::make_shared<ShowArguments>();
    add_installation(*command, arguments->directory);
    command->add_flag("--json", arguments->as_json, json_description);
    on(*command, call, [arguments] { return run_stats(*arguments); });
}

} // namespace containerize::cli

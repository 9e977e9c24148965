// log, rollback, squash: an installation's states.
#include "build/states.h"
#include "cli/build_arguments.h"
#include "cli/command.h"
#include "core/filesystem.h"
#include "core/printable.h"
#include "prefix/states.h"
#include "util/progress.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::cli {

namespace {

using manifest::Manifest;
using nlohmann::json;

struct RollbackArguments : BuildArguments {
    std::optional<unsigned> state;
};

/// The size of what the state added to its parent.
std::uint64_t bytes_of(const Manifest& state, const std::vector<Manifest>& states) {
    const auto parent = std::ranges::find(states, state.parent, &Manifest::state);
    const bool added = parent == states.end() || parent->image.file != state.image.file ||
                       parent->layers.size() < state.layers.size();
    if (!added) return 0;
    return state.layers.empty() ? state.image.size : state.layers.back().size;
}

json describe(const Manifest& state, const std::vector<Manifest>& states, bool current) {
    return {{"state", state.state},
            {"parent", state.parent},
            {"current", current},
            {"created", state.created},
            {"command", state.build.value("command", "")},
            {"squashed", state.build.value(prefix::squashed_key, json::array())},
            {"layers", state.layers.size()},
            {"bytes", bytes_of(state, states)}};
}

/// Prints one state and returns its number. `before` is the previous line's state, usually the parent.
unsigned print_state(const json& state, unsigned before) {
    const auto number = state["state"].get<unsigned>();
    const auto parent = state["parent"].get<unsigned>();
    const auto start = fmt::format("{} {:>3}  {}  {:>10}  ", state["current"].get<bool>() ? "*" : " ", number,
                                   printable_line(state["created"].get<std::string>()),
                                   human_bytes(state["bytes"].get<std::uint64_t>()));
    fmt::print("{}{}{}\n", start, parent == before ? "" : fmt::format("(from {}) ", parent),
               printable_line(state["command"].get<std::string>()));
    for (const auto& squashed : state["squashed"])
        fmt::print("{:{}}of {}\n", "", start.size(), printable_line(squashed.get<std::string>()));
    return number;
}

Result<int> show_log(const ShowArguments& arguments) {
    auto prefix = TRY(manifest::resolve_installation(arguments.directory));
    auto current = TRY(manifest::read_manifest(prefix));
    auto states = TRY(prefix::read_states(prefix));
    json list = json::array();
    for (const auto& state : states)
        list.push_back(describe(state, states, state.state == current.state));
    if (arguments.as_json) {
        fmt::print("{}\n", list.dump(2, ' ', false, json::error_handler_t::replace));
        return 0;
    }
    unsigned before = 0;
    for (const auto& state : list)
        before = print_state(state, before);
    return 0;
}

Result<int> run_rollback(const RollbackArguments& arguments, const std::string& command_line) {
    auto options = TRY(options_from(arguments, command_line));
    const auto rolled = TRY(build::rollback(options, arguments.state));
    if (arguments.quiet) return 0;
    if (rolled.from == rolled.to)
        fmt::print("State {} is already the current state.\n", rolled.to);
    else
        fmt::print("Changed from state {} to state {}.\n", rolled.from, rolled.to);
    return 0;
}

Result<int> run_squash(const BuildArguments& arguments, const std::string& command_line) {
    auto options = TRY(options_from(arguments, command_line));
    // Given for this image, not configured for all.
    const bool compress_anew = !arguments.compression.empty() || !arguments.block_size.empty();
    auto squashed = TRY(build::squash(options, compress_anew));
    if (arguments.quiet) return 0;
    if (squashed.unchanged)
        fmt::print("Nothing to squash: {} is already one image.\n", squashed.prefix.string());
    else
        fmt::print("Squashed: {}, {}, one image of {}, in {}.\n", squashed.prefix.string(),
                   counted(squashed.files, "file"), human_bytes(squashed.image_bytes),
                   human_seconds(squashed.seconds));
    return 0;
}

} // namespace

void add_log(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("log", "List the states of an installation");
    const auto arguments = std::make_shared<ShowArguments>();
    add_installation(*command, arguments->directory);
    command->add_flag("--json", arguments->as_json, json_description);
    command->footer(
        "A star marks the current state. Sizes are those of the layers that updates added. \"(from N)\" "
        "marks a state\n"
        "that was made from state N, not from the one above it. A squashed state is followed by the "
        "commands that\n"
        "made its files.");
    on(*command, call, [arguments] { return show_log(*arguments); });
}

void add_rollback(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("rollback", "Go back to an earlier state of an installation");
    const auto arguments = std::make_shared<RollbackArguments>();
    add_installation(*command, arguments->prefix);
    command->add_option("N", arguments->state, "Number of the state")
        ->default_str("the state that the current one was made from");
    add_work_options(*command, *arguments);
    command->footer("No state is lost: `containerize rollback DIR N` also goes forward again.");
    on(*command, call, [&call, arguments] { return run_rollback(*arguments, call.line); });
}

void add_squash(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("squash", "Merge the layers of an installation into one image");
    const auto arguments = std::make_shared<BuildArguments>();
    add_installation(*command, arguments->prefix);
    add_layout_option(*command, *arguments);
    add_work_options(*command, *arguments);
    add_timings_option(*command, *arguments);
    command->footer(
        "The other states are removed, so `rollback` has no state to go back to. With --compression "
        "or\n--block-size, all content is compressed again, also if there are no layers.");
    on(*command, call, [&call, arguments] {
        return with_timings(*arguments, [&] { return run_squash(*arguments, call.line); });
    });
}

} // namespace containerize::cli

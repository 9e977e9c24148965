#include "build/update_installation.h"
#include "cli/build_arguments.h"
#include "cli/command.h"
#include "core/printable.h"
#include "util/log.h"
#include "util/progress.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace containerize::cli {

namespace {

struct UpdateArguments : BuildArguments {
    bool prune = false, dry_run = false, json = false;
};

constexpr const char* update_examples = R"(Examples:
  containerize update ~/envs/ml -- pip install rich
  containerize update ~/envs/ml -r more.txt
  containerize update ~/envs/ml env.yml              # add or change packages that the file requests
  containerize update ~/envs/ml --prune env.yml      # and remove packages that it does not need
  containerize update ~/envs/ml --dry-run env.yml    # only show what would change
  containerize update ~/envs/ml --post-install patch.sh
  containerize update ~/envs/ml -- bash              # look around, change, exit

Only changes are written, as a new layer. Running programs keep the files that they started with.
If anything fails, or the command returns an error, nothing changes.
`containerize log`, `rollback` and `squash` show, undo and merge updates.)";

using environments::PackageChange;

const char* kind_of(const PackageChange& change) {
    if (!change.before) return "added";
    if (!change.after) return "removed";
    return "changed";
}

nlohmann::json to_json(const PackageChange& change) {
    nlohmann::json object = {
        {"name", change.name}, {"change", kind_of(change)}, {"from", change.of_pip ? "pip" : "conda"}};
    for (const auto& [key, version] :
         {std::pair("before", &change.before), std::pair("after", &change.after)}) {
        if (!*version) continue;
        object[key] = {{"version", (*version)->version}};
        if (!change.of_pip)
            object[key].update({{"build", (*version)->build}, {"channel", (*version)->channel}});
    }
    if (change.size > 0) object["size"] = change.size;
    return object;
}

/// Of the table, in columns.
constexpr const char* row = "{:<24} {:<8} {:<12} {:<12} {:<16} {:>9}  {}\n";

void print_change(const PackageChange& change) {
    const auto version = [](const std::optional<PackageChange::Version>& one) {
        return one ? printable_line(one->version) : std::string("-");
    };
    const auto& shown = change.after ? *change.after : *change.before;
    fmt::print(row, printable_line(change.name), kind_of(change), version(change.before),
               version(change.after), change.of_pip ? "pip" : printable_line(shown.build),
               change.size > 0 ? human_bytes(change.size) : "", printable_line(shown.channel));
}

void print_plan(const environments::UpdatePlan& plan, std::uint64_t bytes) {
    if (!plan.changes.empty())
        fmt::print(row, "package", "change", "installed", "new", "build", "size", "channel");
    for (const auto& change : plan.changes)
        print_change(change);
    fmt::print("{} would change{}.\n", counted(plan.changes.size(), "package"),
               bytes == 0 ? "" : ", with files of " + human_bytes(bytes));
    if (plan.unsolved != 0)
        fmt::print("The packages that pip installs ({}) are not solved here.\n",
                   counted(plan.unsolved, "line"));
}

Result<int> show_plan(const UpdateArguments& arguments, const std::vector<std::string>& program,
                      const std::string& command_line) {
    auto build = TRY(options_from(arguments, command_line));
    const auto plan =
        TRY(build::plan_update({.build = std::move(build), .command = program, .prune = arguments.prune}));
    std::uint64_t bytes = 0;
    auto list = nlohmann::json::array();
    for (const auto& change : plan.changes) {
        bytes += change.size;
        list.push_back(to_json(change));
    }
    if (!arguments.json) {
        print_plan(plan, bytes);
        return 0;
    }
    const nlohmann::json all = {{"packages", list}, {"bytes", bytes}, {"unsolved", plan.unsolved}};
    fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
}

} // namespace

Result<int> run_update(const BuildArguments& arguments, bool prune, const std::vector<std::string>& program,
                       const std::string& command_line) {
    auto build = TRY(options_from(arguments, command_line));
    auto updated = TRY(build::update({.build = std::move(build), .command = program, .prune = prune}));
    if (arguments.quiet) return 0;
    if (updated.unchanged)
        fmt::print("{}\n", log::tagged("INFO", "Nothing changed in " + updated.prefix.string() + "."));
    else
        fmt::print("{}\n", log::tagged("INFO", fmt::format("Updated: {}, state {} ({}, {} layer, {}) in {}.",
                                                           updated.prefix.string(), updated.state,
                                                           counted(updated.files, "file"),
                                                           human_bytes(updated.image_bytes),
                                                           counted(updated.commands, "command"),
                                                           human_seconds(updated.seconds))));
    return 0;
}

void add_update(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("update", "Change an installation. Each change is a new layer");
    const auto arguments = std::make_shared<UpdateArguments>();
    command->footer(update_examples);
    add_installation(*command, arguments->prefix);
    add_spec(*command, *arguments);
    take_program(*command, "Program whose changes to the installation are kept")->default_str("none");
    command->add_flag("--prune", arguments->prune, "Remove conda packages that SPEC does not need");
    auto* dry_run = command->add_flag("--dry-run", arguments->dry_run, "Show which packages would change");
    command->add_flag("--json", arguments->json, json_description)->needs(dry_run);
    add_content_options(*command, *arguments);
    add_engine_option(*command, *arguments);
    add_profile_options(*command, *arguments);
    add_work_options(*command, *arguments);
    add_timings_option(*command, *arguments);
    on(*command, call, [&call, arguments] {
        return with_timings(*arguments, [&] {
            return arguments->dry_run ? show_plan(*arguments, call.program, call.line)
                                      : run_update(*arguments, arguments->prune, call.program, call.line);
        });
    });
}

} // namespace containerize::cli

#include "cli/command.h"
#include "cli/exec.h"
#include "cli/installation.h"
#include "cluster/rank.h"
#include "core/core_dumps.h"
#include "core/filesystem.h"
#include "util/process.h"

#include <memory>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace containerize::cli {

namespace {

struct LaunchArguments {
    std::string environment, site;
    unsigned processes = 0;
    bool dry_run = false;
};

/// The command that each node runs: PREFIX/bin/containerize-rank with its arguments.
std::vector<std::string> node_command(const fs::path& prefix, const LaunchArguments& arguments,
                                      const std::vector<std::string>& program) {
    std::vector<std::string> words = {(prefix / "bin/containerize-rank").string(), "--torchrun"};
    if (arguments.processes != 0)
        words.insert(words.end(), {"--nproc-per-node", std::to_string(arguments.processes)});
    if (!arguments.site.empty()) words.insert(words.end(), {"--site", arguments.site});
    words.emplace_back("--");
    words.insert(words.end(), program.begin(), program.end());
    return words;
}

std::vector<std::string> with_srun(std::size_t nodes, const std::vector<std::string>& command) {
    const auto count = std::to_string(nodes);
    // One task per node gets all of it, whatever the job's own settings are. If a node fails, the others are
    // stopped instead of waiting for it.
    std::vector<std::string> words = {"srun",
                                      "--nodes=" + count,
                                      "--ntasks=" + count,
                                      "--ntasks-per-node=1",
                                      "--cpu-bind=none",
                                      "--kill-on-bad-exit=1"};
    words.insert(words.end(), command.begin(), command.end());
    return words;
}

/// Prints what containerize-rank will start on each node, in the job's next step.
Status show_nodes(const fs::path& prefix, const LaunchArguments& arguments,
                  const std::vector<std::string>& program, const std::vector<std::string>& hosts) {
    auto variables = current_environment();
    auto site = TRY(cluster::find_site(arguments.site, variables));
    auto processes = TRY(cluster::default_processes(variables, site));
    const auto machine = cluster::this_machine();
    variables.erase("SLURM_PROCID"); // that of the batch script
    variables["SLURM_STEP_ID"] = "0";
    auto place = TRY(cluster::find_place(variables, machine));
    place.hosts = hosts;
    for (std::size_t node = 0; node < hosts.size(); ++node) {
        variables["SLURMD_NODENAME"] = hosts[node];
        place.ranks.node = static_cast<unsigned>(node);
        auto words = cluster::torchrun_command((prefix / "bin/torchrun").string(), variables, place,
                                               arguments.processes == 0 ? processes : arguments.processes,
                                               machine.host);
        words.insert(words.end(), program.begin(), program.end());
        fmt::print("# on {}, if it is the job's first step:\n{}\n", hosts[node], shell_line(words));
    }
    return {};
}

[[nodiscard]] std::unexpected<Error> become(const std::vector<std::string>& words) {
    forget_tasks_of_job();
    const auto list = argument_vector(words);
    restore_core_limit();
    execvp(list[0], list.data());
    return fail_errno("cannot run", words.front());
}

Result<int> run_launch(const LaunchArguments& arguments, const std::vector<std::string>& program) {
    if (program.empty())
        return fail_input("no program is given", {}, {},
                          "Give it after --, as in:  containerize launch -- train.py ARGUMENTS");
    auto prefix = TRY(find_installation(arguments.environment));
    auto hosts = TRY(cluster::find_hosts(current_environment(), cluster::Launcher::none));
    auto words = node_command(prefix, arguments, program);
    if (hosts.size() > 1) words = with_srun(hosts.size(), words);
    if (!arguments.dry_run) return become(words);
    fmt::print("{}\n", shell_line(words));
    if (hosts.empty()) hosts.emplace_back("this machine");
    TRY(show_nodes(prefix, arguments, program, hosts));
    return 0;
}

} // namespace

void add_environment_option(CLI::App& command, std::string& directory) {
    command.add_option("--env", directory, "The installation")->type_name("DIR")->default_str(active);
}

void add_site_option(CLI::App& command, std::string& site) {
    command.add_option("--site", site, "Profile of the site: a name or a file")
        ->type_name("NAME|FILE")
        ->default_str("the detected one")
        ->envname(Variable("CONTAINERIZE_SITE").name());
}

void add_launch(CLI::App& app, Call& call) {
    auto* command =
        app.add_subcommand("launch", "Run a training script with torchrun on all nodes and GPUs of the job");
    const auto arguments = std::make_shared<LaunchArguments>();
    take_program(*command, "The training script and its arguments")->type_name("FILE");
    add_environment_option(*command, arguments->environment);
    command->add_option("--nproc-per-node", arguments->processes, "Number of processes on each node")
        ->type_name("N")
        ->default_str("one for each GPU of the job, else one");
    add_site_option(*command, arguments->site);
    command->add_flag("--dry-run", arguments->dry_run, "Print the commands instead of running them");
    command->footer(
        "Example, in a job of any number of nodes:\n  containerize launch -- train.py --epochs 5");
    on(*command, call, [&call, arguments] { return run_launch(*arguments, call.program); });
}

} // namespace containerize::cli

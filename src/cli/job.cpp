#include "cli/command.h"
#include "cli/exec.h"
#include "cli/help.h"
#include "cli/installation.h"
#include "cluster/job_script.h"
#include "core/entries.h"
#include "core/filesystem.h"
#include "util/process.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/format.h>

namespace containerize::cli {

namespace {

struct JobArguments {
    std::string environment, site, kind;
    unsigned nodes = 1, gpus = 0;
};

fs::path templates() {
    return installation_tree() / "share/containerize/jobs";
}

std::vector<std::string> kinds() {
    std::vector<std::string> names;
    std::error_code failed;
    for (const auto& entry : entries_in(templates(), failed))
        if (entry.path().extension() == ".sh") names.push_back(entry.path().stem().string());
    std::ranges::sort(names);
    return names;
}

Result<std::string> read_template(const std::string& kind) {
    const auto known = kinds();
    if (std::ranges::find(known, kind) != known.end()) return read_file(templates() / (kind + ".sh"));
    return fail_input("unknown kind of job", {}, kind, "Available: " + joined(known, ", ") + ".");
}

/// A job name for Slurm, made from the script's name.
std::string job_name(const std::string& script) {
    auto name = fs::path(script).stem().string();
    std::erase_if(name,
                  [](unsigned char c) { return c <= ' ' || c >= 0x7f || c == '\'' || c == '"' || c == '#'; });
    return name.empty() ? "job" : name;
}

/// The site's name, or its file as an absolute path, so that the job finds it from any directory.
std::string named_for_job(const std::string& site) {
    return site.find('/') == std::string::npos ? site : fs::absolute(site).lexically_normal().string();
}

Result<int> run_job(const JobArguments& arguments, const std::vector<std::string>& program) {
    if (program.empty())
        return fail_input(
            "no program is given", {}, {},
            "Give it after --, as in:  containerize job --nodes 2 --gpus 4 -- train.py ARGUMENTS");
    if (arguments.nodes == 0) return fail_input("a job needs at least one node", {}, "--nodes");
    auto prefix = TRY(find_installation(arguments.environment));
    const auto site = TRY(cluster::find_site(arguments.site, current_environment()));
    auto named = named_for_job(arguments.site);
    // If no site is named or recognised, leave it open: the job's nodes may recognise it.
    if (named.empty() && site.name != "generic") named = site.name;
    const cluster::JobRequest request{.name = job_name(program.front()),
                                      .prefix = shell_quoted(prefix.string()),
                                      .program = shell_line(program),
                                      .site = named.empty() ? "" : shell_quoted(named),
                                      .nodes = arguments.nodes,
                                      .gpus = arguments.gpus};
    const auto kind = arguments.kind.empty() ? cluster::default_kind(request) : arguments.kind;
    auto text = TRY(read_template(kind));
    if (request.nodes > 1 && text.find("@NODES@") == std::string::npos)
        return fail_input("a job of this kind runs on only one node", {}, "--kind " + kind,
                          "Leave out --nodes, or use --kind torchrun.");
    auto script = TRY(cluster::fill_job_script(text, request, site));
    fmt::print("{}", script);
    return 0;
}

} // namespace

void add_job(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("job", "Print a Slurm job script that runs a Python script");
    const auto arguments = std::make_shared<JobArguments>();
    take_program(*command, "The Python script and its arguments")->type_name("FILE");
    add_site_option(*command, arguments->site);
    command->add_option("--nodes", arguments->nodes, "Number of nodes")
        ->type_name("N")
        ->capture_default_str();
    command->add_option("--gpus", arguments->gpus, "Number of GPUs on each node, as Slurm counts them")
        ->type_name("N")
        ->default_str("none");
    command->add_option("--kind", arguments->kind, "How the Python script is started")
        ->type_name("KIND")
        ->default_str("single, standalone or torchrun, depending on --nodes and --gpus")
        ->check(offer(fmt::format("{}", fmt::join(kinds(), ","))));
    add_environment_option(*command, arguments->environment);
    command->footer("Example:\n  containerize job --site lumi --nodes 2 --gpus 8 -- train.py > job.sh");
    on(*command, call, [&call, arguments] { return run_job(*arguments, call.program); });
}

} // namespace containerize::cli

#include "rank.h"

#include "cluster/rank.h"
#include "core/cpus.h"
#include "core/exit_code.h"
#include "core/text.h"
#include "core/variables.h"
#include "launch/session_state.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace containerize {

namespace {

using namespace containerize::cluster;

constexpr const char* help =
    R"(Usage: containerize-rank [OPTION ...] COMMAND [ARGUMENT ...]

Runs COMMAND as one rank of a parallel program. COMMAND is searched for in the installation first. Before it starts,
MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK, LOCAL_RANK, LOCAL_WORLD_SIZE and NODE_RANK are set from Slurm or MPI, the
network settings of the site profile are applied, caches are created on this node, and the process is bound to the CPUs
near its GPU. Variables that are already set do not change.

  --torchrun SCRIPT ...   run torchrun on this node, together with the other nodes of the job or step
  --nproc-per-node N      processes of torchrun per node (default: the number of GPUs from Slurm, or 1)
  --site NAME|FILE        site profile (default: $CONTAINERIZE_SITE, or the detected one)
  --print                 print the variables, for eval in a job script, and exit
  --master                print the name of the first node, and exit
)";

struct Options {
    std::string site;
    unsigned processes = 0; ///< 0: the default for the job
    bool torchrun = false, print = false, master = false, help = false;
    std::vector<std::string> command;
};

int report(const Error& error) {
    std::fprintf(stderr, "containerize-rank: %s\n", to_string(error).c_str());
    return error.fault == Fault::input ? exit_usage : exit_failure;
}

Result<Options> parse_options(char** words) {
    Options options;
    if (const char* site = value_of("CONTAINERIZE_SITE")) options.site = site;
    for (; *words != nullptr && **words == '-'; ++words) {
        const std::string_view word = *words;
        const auto value = [&]() -> Result<std::string> {
            if (*++words == nullptr) return fail_input(std::string(word) + " needs a value");
            return std::string(*words);
        };
        if (word == "--") {
            ++words;
            break;
        }
        if (word == "--torchrun") {
            options.torchrun = true;
        } else if (word == "--print") {
            options.print = true;
        } else if (word == "--master") {
            options.master = true;
        } else if (word == "--help" || word == "-h") {
            options.help = true;
        } else if (word == "--site") {
            options.site = TRY(value());
        } else if (word == "--nproc-per-node") {
            auto text = TRY(value());
            const auto number = to_number<unsigned>(text);
            if (!number) return fail_input("--nproc-per-node is not a number", "it is \"" + text + "\"");
            options.processes = *number;
        } else {
            return fail_input("unknown option", {}, std::string(word), "See containerize-rank --help.");
        }
    }
    for (; *words != nullptr; ++words)
        options.command.emplace_back(*words);
    const bool asks = options.print || options.master || options.help;
    if (options.command.empty() && !asks)
        return fail_input("no command is given", {}, {}, "See containerize-rank --help.");
    return options;
}

/// The installation: this program is in its "bin" or "libexec".
std::string own_prefix() {
    std::error_code failed;
    return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path().parent_path().string();
}

void apply(const Settings& settings) {
    for (const auto& [name, value] : settings)
        setenv(name.c_str(), value.c_str(), 1);
}

void print(const Settings& settings) {
    for (const auto& [name, value] : settings)
        std::printf("export %s=%s\n", name.c_str(), shell_quoted(value).c_str());
}

Status check_for_torchrun(const Place& place) {
    if (place.ranks.local_size > 1)
        return fail_input("--torchrun needs one task per node",
                          "this node has " + std::to_string(place.ranks.local_size) + " tasks", {},
                          "Use srun --ntasks-per-node=1, or leave out --torchrun to run one task per GPU.");
    if (place.ranks.launcher == Launcher::none && place.hosts.size() > 1)
        return fail_input("--torchrun must be started on each node of the job", {}, {},
                          "Use `containerize launch`, or srun --ntasks-per-node=1.");
    return {};
}

[[nodiscard]] int become(std::vector<std::string> words) {
    const char* program = words.front().c_str();
    execvp(program, pointers_to(words).data());
    std::fprintf(stderr, "containerize-rank: cannot execute %s: %s\n", program, std::strerror(errno));
    return exit_not_found;
}

void put_on_path(const std::string& directory) {
    setenv("PATH", (directory + ":" + search_path(current_environment())).c_str(), 1);
}

Result<Settings> settings_of(const Options& options, const Environment& variables, const Place& place,
                             const Site& site, const Machine& machine) {
    Settings settings = rank_settings(variables, place);
    // The others are for a single rank, which neither torchrun is nor a script that starts ranks itself.
    if (options.torchrun || place.ranks.launcher == Launcher::none)
        std::erase_if(settings, [](const auto& one) { return !one.first.starts_with("MASTER_"); });
    for (const auto& one : site_settings(variables, site))
        settings.push_back(one);
    const auto temporary = variable(variables, "TMPDIR");
    std::vector<std::string> parents = {temporary.empty() ? "/tmp" : temporary};
    // In the state directory nobody else can take the name of a cache.
    if (const auto state = launch::open_state_directory()) parents.push_back(state->path);
    auto caches = TRY(make_caches(variables, site, parents, machine.user));
    // Printed once for each node.
    if (place.ranks.local_rank == 0)
        for (const auto& refused : caches.refused)
            std::fprintf(stderr, "containerize: warning: %s\n", to_string(refused).c_str());
    settings.insert(settings.end(), caches.settings.begin(), caches.settings.end());
    return settings;
}

Result<int> start(const Options& options) {
    const auto variables = current_environment();
    const auto machine = this_machine();
    auto place = TRY(find_place(variables, machine));
    if (options.master) {
        std::printf("%s\n", place.address.c_str());
        return 0;
    }
    auto site = TRY(find_site(options.site, variables));
    auto settings = TRY(settings_of(options, variables, place, site, machine));
    if (options.print) {
        print(settings);
        return 0;
    }
    auto words = options.command;
    const auto prefix = own_prefix();
    if (options.torchrun) {
        TRY(check_for_torchrun(place));
        auto processes = TRY(default_processes(variables, site));
        words = torchrun_command(prefix + "/bin/torchrun", variables, place,
                                 options.processes == 0 ? processes : options.processes, machine.host);
        words.insert(words.end(), options.command.begin(), options.command.end());
    } else {
        const auto cpus =
            cpus_of_task(site.affinity, {.rank = place.ranks.local_rank, .size = place.ranks.local_size},
                         machine.allowed, machine.near);
        if (!cpus.empty()) use_cpus(cpus);
    }
    apply(settings);
    put_on_path(prefix + "/bin");
    return become(std::move(words));
}

} // namespace

int run_rank(int, char** argv) {
    const auto options = parse_options(argv + 1);
    if (!options) return report(options.error());
    if (options->help) {
        std::fputs(help, stdout);
        return 0;
    }
    const auto done = start(*options);
    return done ? *done : report(done.error());
}

} // namespace containerize

// stage: copies an installation's images to the nodes of a job until the job ends.
#include "cli/command.h"
#include "cli/exec.h"
#include "cli/installation.h"
#include "cluster/master.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "manifest/manifest.h"
#include "mounts/held_image.h"
#include "util/process.h"
#include "util/progress.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace containerize::cli {

namespace {

struct StageArguments {
    std::string directory, place = "local";
    bool node = false;
    std::vector<std::string> brought;
    std::string report = {};
};

constexpr const char* stage_examples = R"(Example, in a job script before its srun:
  containerize stage ~/envs/ml

Each node of the job gets a copy of the images, which is verified. Sessions that start on the node later read the
copy instead of the shared filesystem. The copy disappears when the job ends. Without Slurm, run this on each node,
and keep it running:
  containerize stage --node ~/envs/ml &)";

// A node's report is a line of its number in the step, the token of this run, and one of these words. Other
// lines are messages, also of programs that the site or the user lets run in each task: they do not know the
// token. An empty line comes before a report, because Slurm may cut a long message before its line break.
constexpr std::string_view held = "held", not_held = "failed";

/// Holds this node's copies until the process is told to end.
Result<int> hold(const fs::path& prefix, const manifest::Manifest& manifest, manifest::StagePlace place,
                 const StageArguments& arguments) {
    catch_interrupts();
    const auto& brought = arguments.brought;
    auto holder = mounts::ImageHolder::hold(manifest, prefix, place, {brought.begin(), brought.end()});
    std::array<char, 256> node{};
    gethostname(node.data(), node.size() - 1);
    if (!holder) {
        holder.error().what = fmt::format("{}: {}", node.data(), holder.error().what);
        return fail(std::move(holder.error()));
    }
    for (const auto& note : holder->notes())
        fmt::print(stderr, "containerize: {}: {}\n", node.data(), note);
    fmt::print("\n{}{}{}\n", arguments.report, arguments.report.empty() ? "" : " ", held);
    std::fflush(stdout);
    holder->serve();
    return 0;
}

/// A program that keeps running after this one has ended.
struct Background {
    Fd output; ///< a pipe
    Fd errors; ///< of the program itself: a memfd, to which it can write as long as it runs
};

Result<Background> start_in_background(const std::vector<std::string>& words) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("cannot create a pipe");
    const Fd input(ends[1]);
    Background program{.output = Fd(ends[0]), .errors = Fd(memfd_create("errors", MFD_CLOEXEC))};
    if (!program.errors) return fail_errno("cannot create a file in memory");
    posix_spawn_file_actions_t streams;
    posix_spawn_file_actions_init(&streams);
    posix_spawn_file_actions_addopen(&streams, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&streams, input.get(), 1);
    posix_spawn_file_actions_adddup2(&streams, program.errors.get(), 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID); // no signals from the keyboard
    const auto list = argument_vector(words);
    const int failed = posix_spawnp(nullptr, list.front(), &streams, &attributes, list.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&streams);
    if (failed != 0) return fail_errno("cannot run", words.front(), failed);
    return program;
}

/// Whether the nodes that have reported hold a copy, by their numbers. Of several reports of a node, the last
/// counts: the process that held the copy may have been killed.
class Reports {
public:
    explicit Reports(const std::string& token)
        : held_(fmt::format(" {} {}", token, held)), not_held_(fmt::format(" {} {}", token, not_held)) {}

    /// Returns false if the line is no report.
    bool add(std::string_view line) {
        const bool good = line.ends_with(held_);
        if (!good && !line.ends_with(not_held_)) return false;
        const auto number = line.substr(0, line.size() - (good ? held_ : not_held_).size());
        nodes_[std::string(number)] = good;
        return true;
    }

    [[nodiscard]] std::size_t all() const { return nodes_.size(); }
    [[nodiscard]] std::size_t good() const {
        return static_cast<std::size_t>(
            std::ranges::count_if(nodes_, [](const auto& node) { return node.second; }));
    }

private:
    std::string held_, not_held_;
    std::map<std::string, bool> nodes_;
};

/// Waits until all nodes have reported, passes their messages on, and returns how many hold a copy.
std::size_t wait_for_nodes(const Fd& output, std::size_t nodes, const std::string& token) {
    std::string text;
    std::array<char, 4096> buffer{};
    Reports reports(token);
    while (reports.all() < nodes) {
        const auto got = read(output.get(), buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break; // srun has ended
        text.append(buffer.data(), static_cast<std::size_t>(got));
        for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
            const auto line = std::string_view(text).substr(0, end);
            if (!reports.add(line) && !line.empty()) fmt::print(stderr, "{}\n", line);
        }
    }
    if (!text.empty()) fmt::print(stderr, "{}\n", text);
    return reports.good();
}

/// What nobody can predict.
std::string new_token() {
    std::random_device random;
    return fmt::format("{:08x}{:08x}{:08x}", random(), random(), random());
}

/// A name that nobody can take in advance.
std::string new_name() {
    return fmt::format("{}/containerize-image-{}", mounts::local_directory(), new_token());
}

/// Copies the images by sbcast, which reads them once. Returns their paths on the nodes.
std::vector<std::string> bring(const fs::path& prefix, const manifest::Manifest& manifest) {
    std::vector<std::string> brought;
    const auto variables = current_environment();
    if (!find_program("sbcast", variable(variables, "PATH"))) return brought;
    for (const auto& image : manifest.images()) {
        brought.push_back(new_name());
        const auto sent = run({.argv = {"sbcast", (prefix / image.file).string(), brought.back()}});
        if (!sent || !sent->ok())
            fmt::print(stderr, "containerize: sbcast failed, so each node may read the image itself: {}\n",
                       sent ? tail(sent->output, 3) : to_string(sent.error()));
    }
    return brought;
}

std::vector<std::string> holder_command(const fs::path& prefix, const StageArguments& arguments,
                                        std::size_t nodes, const std::vector<std::string>& brought,
                                        const std::string& token) {
    const auto count = std::to_string(nodes);
    std::error_code unknown;
    // Report failure however the holder ends, or the caller would wait for this node forever. Messages come
    // before it, because srun passes the two streams of a task on separately.
    const auto script = fmt::format("report=\"$SLURM_PROCID {}\"; "
                                    "\"$@\" --report \"$report\" 2>&1 || printf '\\n%s {}\\n' \"$report\"",
                                    token, not_held);
    // A step on all nodes that takes no resources from the job's other steps.
    std::vector<std::string> words = {"srun",
                                      "--overlap",
                                      "--nodes=" + count,
                                      "--ntasks=" + count,
                                      "--ntasks-per-node=1",
                                      "--cpus-per-task=1",
                                      "--gres=none",
                                      "--mpi=none",
                                      "--kill-on-bad-exit=0",
                                      "--quiet",
                                      "sh",
                                      "-c",
                                      script,
                                      "sh",
                                      fs::read_symlink("/proc/self/exe", unknown).string(),
                                      "stage",
                                      "--node",
                                      "--to",
                                      arguments.place};
    for (const auto& file : brought)
        words.insert(words.end(), {"--brought", file});
    words.push_back(prefix.string());
    return words;
}

Result<int> stage_on_nodes(const fs::path& prefix, const manifest::Manifest& manifest,
                           const StageArguments& arguments) {
    auto hosts = TRY(cluster::find_hosts(current_environment(), cluster::Launcher::none));
    if (hosts.empty())
        return fail_input("this is not a Slurm job", "SLURM_JOB_NODELIST is not set", {},
                          "Run `containerize stage --node DIR &` on each node, or set CONTAINERIZE_STAGE.");
    const auto brought = hosts.size() > 1 ? bring(prefix, manifest) : std::vector<std::string>();
    forget_tasks_of_job();
    const auto token = new_token();
    auto step = TRY(start_in_background(holder_command(prefix, arguments, hosts.size(), brought, token)));
    const auto count = wait_for_nodes(step.output, hosts.size(), token);
    fmt::print(stderr, "{}", read_file(path_of(step.errors)).value_or(""));
    if (count == 0)
        return fail({.what = "no node of the job has a copy",
                     .where = prefix.string(),
                     .hint = "Programs still run, and read the images in their original place."});
    std::uint64_t bytes = 0;
    for (const auto& image : manifest.images())
        bytes += image.size;
    fmt::print(stderr, "Staged: {} of {} nodes have a copy of {} ({}), until the job ends.\n", count,
               hosts.size(), prefix.string(), human_bytes(bytes));
    return 0;
}

Result<int> run_stage(const StageArguments& arguments) {
    auto prefix = TRY(find_installation(arguments.directory));
    auto manifest = TRY(manifest::read_manifest(prefix));
    const auto place = arguments.place == "ram" ? manifest::StagePlace::ram : manifest::StagePlace::local;
    return arguments.node ? hold(prefix, manifest, place, arguments)
                          : stage_on_nodes(prefix, manifest, arguments);
}

} // namespace

void add_stage(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("stage", "Copy an installation to the nodes of the job");
    const auto arguments = std::make_shared<StageArguments>();
    command->add_option("DIR", arguments->directory, "The installation")->default_str(active);
    command
        ->add_option("--to", arguments->place,
                     "Where to keep the copy: on a disk of each node, or in its memory")
        ->type_name("PLACE")
        ->check(CLI::IsMember({"local", "ram"}))
        ->capture_default_str();
    command->add_flag("--node", arguments->node,
                      "Copy to this node only, and keep the copy until this command ends");
    command->add_option("--brought", arguments->brought, "Files of the images that are on this node already")
        ->needs("--node")
        ->allow_extra_args(false)
        ->group(""); // only for this program itself
    command->add_option("--report", arguments->report, "What a report of this node begins with")
        ->needs("--node")
        ->group("");
    command->footer(stage_examples);
    on(*command, call, [arguments] { return run_stage(*arguments); });
}

} // namespace containerize::cli

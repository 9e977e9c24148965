#include "diagnosis/diagnosis.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/printable.h"
#include "core/resources.h"
#include "core/staging.h"
#include "environments/build_namespace.h"
#include "fuse/connection.h"
#include "gpu/host.h"
#include "image/writer.h"
#include "launch/namespace.h"
#include "launch/session_state.h"
#include "manifest/manifest.h"
#include "pip/python_choice.h"
#include "prefix/programs.h"
#include "util/process.h"
#include "util/progress.h"

#include <array>
#include <cstdio>
#include <functional>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::diagnosis {

namespace {

using Verdict = Finding::Verdict;

// Runs `trial` in a child process, because it changes the process for good. Returns its error message, or an
// empty string on success.
std::string in_child(const std::function<Status()>& trial) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return "cannot create a pipe";
    const Fd reader(ends[0]);
    Fd writer(ends[1]);
    const pid_t pid = fork();
    if (pid < 0) return "cannot start a process";
    if (pid == 0) {
        const auto done = trial();
        if (!done) {
            const auto text = to_string(done.error());
            [[maybe_unused]] const auto written = write(writer.get(), text.data(), text.size());
        }
        _exit(0);
    }
    writer.reset();
    std::string said;
    std::array<char, 4096> buffer;
    for (ssize_t got = 0; (got = read(reader.get(), buffer.data(), buffer.size())) > 0;)
        said.append(buffer.data(), static_cast<std::size_t>(got));
    waitpid(pid, nullptr, 0);
    return said;
}

Finding kernel() {
    utsname name{};
    uname(&name);
    int major = 0, minor = 0;
    std::sscanf(name.release, "%d.%d", &major, &minor);
    const auto at_least = [&](int wanted_major, int wanted_minor) {
        return std::pair(major, minor) >= std::pair(wanted_major, wanted_minor);
    };
    std::string has, lacks;
    const auto feature = [&](int wanted_major, int wanted_minor, const char* what) {
        auto& list = at_least(wanted_major, wanted_minor) ? has : lacks;
        list += fmt::format("{}{} ({}.{})", list.empty() ? "" : ", ", what, wanted_major, wanted_minor);
    };
    feature(5, 8, "sessions are entered in one step");
    feature(5, 11, "overlayfs without root");
    feature(6, 9, "a killed server is replaced");
    Finding finding{.name = "kernel",
                    .found = fmt::format("Linux {}{}{}", name.release, has.empty() ? "" : ": ", has)};
    if (!at_least(4, 18)) {
        finding.verdict = Verdict::missing;
        finding.advice = "FUSE in user namespaces needs Linux 4.18.";
    } else if (!lacks.empty()) {
        finding.verdict = Verdict::note;
        finding.advice = "Newer kernels have more features: " + lacks + ".";
    }
    return finding;
}

Finding from_trial(std::string name, const std::string& said, std::string success) {
    if (said.empty()) return {.name = std::move(name), .found = std::move(success)};
    const auto end = said.find('\n');
    return {.name = std::move(name),
            .verdict = Verdict::missing,
            .found = said.substr(0, end),
            .advice =
                end == std::string::npos ? "" : said.substr(end + 1, said.find('\n', end + 1) - end - 1)};
}

Finding user_namespaces() {
    return from_trial("user namespaces", in_child([] { return launch::enter_new_namespaces(); }),
                      "can be created");
}

Finding fuse() {
    const auto said = in_child([]() -> Status {
        TRY(launch::enter_new_namespaces());
        const auto connection = TRY(fuse::mount_fuse("/tmp", 1));
        return {};
    });
    return from_trial("FUSE", said, "an image can be mounted");
}

/// Where Kerberos keeps tickets. Files of a site in krb5.conf.d are read first, and the first value found
/// wins.
std::string ticket_cache() {
    if (auto named = variable("KRB5CCNAME"); !named.empty()) return named;
    std::vector<fs::path> files;
    for (const auto& name : names_in("/etc/krb5.conf.d"))
        files.push_back(fs::path("/etc/krb5.conf.d") / name);
    files.emplace_back("/etc/krb5.conf");
    for (const auto& file : files) {
        std::istringstream lines(read_file(file).value_or(""));
        for (std::string line, name, is, value; std::getline(lines, line);)
            if (std::istringstream(line) >> name >> is >> value && name == "default_ccache_name" && is == "=")
                return value;
    }
    return {};
}

/// A user namespace has its own keyrings, so tickets in the kernel's keyring are not visible inside.
std::vector<Finding> kerberos() {
    const auto cache = ticket_cache();
    if (!cache.starts_with("KEYRING:") || geteuid() == 0) return {};
    return {{.name = "Kerberos",
             .verdict = Verdict::note,
             .found = "the credential cache is " + cache,
             .advice = "Programs in installations cannot read the kernel keyrings of processes outside. "
                       "Before kinit, set KRB5CCNAME to a file of your own, such as FILE:/tmp/krb5cc_$UID."}};
}

Finding session_state() {
    const auto state = launch::open_state_directory();
    return from_trial("session state", state ? "" : to_string(state.error()), state ? state->path : "");
}

Finding staging() {
    auto made = Staging::create({});
    if (!made) return from_trial("staging directory", to_string(made.error()), {});
    const auto place = made->path().parent_path();
    const auto type = filesystem_type(place);
    const auto room = available_bytes(place);
    Finding finding{.name = "staging directory",
                    .found =
                        fmt::format("{} ({}, {} free)", place.string(), type, human_bytes(room ? *room : 0))};
    if (is_network_filesystem(type)) {
        finding.verdict = Verdict::note;
        finding.advice = "It is on a network filesystem, where builds are slow. Choose a node-local "
                         "directory with --tmpdir.";
    }
    return finding;
}

/// Tries, with an empty image, which of three ways gives updates a writable layer over the images.
Finding updates() {
    const std::string name = "updates";
    auto made = Staging::create({});
    if (!made) return from_trial(name, to_string(made.error()), {});
    auto space = environments::BuildNamespace::create();
    if (!space) return from_trial(name, to_string(space.error()), {});
    const auto& staging = made->path();
    const auto prefix = staging / "prefix";
    std::error_code failed;
    fs::create_directory(prefix, failed);
    const std::array images = {staging / "image"};
    if (auto written = image::write_tree(prefix, images.front(), {}, 0); !written)
        return from_trial(name, to_string(written.error()), {});
    const auto overlay = space->mount_overlay(images, staging, prefix);
    if (overlay) return {.name = name, .found = "with the kernel's overlayfs"};
    Finding finding{.name = name,
                    .verdict = Verdict::note,
                    .found = "with a copy of the installation",
                    .advice = "They take longer, because overlayfs cannot be used: " + overlay.error().what +
                              ": " + overlay.error().why + "."};
    if (const auto program = find_program("fuse-overlayfs", search_path(current_environment()));
        program && space->mount_fuse_overlay(*program, images, staging, prefix))
        finding = {.name = name, .found = "with fuse-overlayfs"};
    else if (!program)
        finding.advice +=
            " With fuse-overlayfs installed, their time depends only on the size of the change.";
    return finding;
}

Finding resources() {
    const auto available = available_resources();
    return {.name = "CPUs and memory",
            .found = fmt::format("{} CPUs, {}; a build uses {} workers", available.cpus,
                                 human_bytes(available.memory), default_jobs(available))};
}

/// The Python that a requirements file gets.
Finding python(const std::string& wanted) {
    const auto environment = current_environment();
    const auto choice = pip::choose_python(wanted, find_program("uv", search_path(environment)), environment);
    if (!choice)
        return {.name = "python",
                .verdict = Verdict::note,
                .found = to_string(choice.error()).substr(0, to_string(choice.error()).find('\n')),
                .advice = choice.error().hint};
    if (!choice->interpreter)
        return {.name = "python",
                .found = (choice->version.empty() ? "" : choice->version + " ") + "from conda (" +
                         choice->reason + ")"};
    const auto& interpreter = *choice->interpreter;
    auto advice = pip::warning_about(interpreter);
    return {.name = "python",
            .verdict = advice.empty() ? Verdict::ok : Verdict::note,
            .found = fmt::format("{} from {} ({})", interpreter.version, interpreter.executable.string(),
                                 choice->reason),
            .advice = std::move(advice)};
}

/// Tries to create files in the nearest existing directory.
Finding place(const fs::path& given) {
    const std::string name = "prefix";
    auto prefix = resolve(given);
    if (!prefix) return from_trial(name, to_string(prefix.error()), {});
    fs::path directory = *prefix;
    while (!quiet::is_directory(directory) && directory != directory.root_path())
        directory = directory.parent_path();
    if (is_noexec(directory))
        return {.name = name,
                .verdict = Verdict::missing,
                .found = directory.string() + " is on a filesystem that is mounted noexec",
                .advice = "No program can be started there. Choose a prefix on another filesystem."};
    std::string trial = (directory / ".containerize-doctor-XXXXXX").string();
    const Fd file(mkostemp(trial.data(), O_CLOEXEC));
    if (!file) return from_trial(name, to_string(fail_errno("cannot write", directory.string()).error()), {});
    const std::string second = trial + "-link";
    const bool links = link(trial.c_str(), second.c_str()) == 0;
    unlink(second.c_str());
    unlink(trial.c_str());
    const auto room = available_bytes(directory);
    return {.name = name,
            .verdict = links ? Verdict::ok : Verdict::note,
            .found =
                fmt::format("{} ({}, {} free, hard links: {})", directory.string(),
                            filesystem_type(directory), human_bytes(room ? *room : 0), links ? "yes" : "no"),
            .advice = links ? "" : "Commands are symbolic links to one launcher, which also works."};
}

std::vector<Finding> gpus() {
    const gpu::DirectoryView root("/");
    const auto host = gpu::discover(root);
    std::vector<Finding> findings;
    for (const auto* vendor : gpu::vendors) {
        auto devices = host.describe(*vendor);
        if (devices.empty()) continue;
        auto advice = gpu::obstacle(root, host, *vendor);
        findings.push_back({.name = std::string(vendor->name) + " GPUs",
                            .verdict = advice.empty() ? Verdict::ok : Verdict::note,
                            .found = std::move(devices),
                            .advice = std::move(advice)});
    }
    if (findings.empty()) findings.push_back({.name = "GPUs", .found = "none on this machine"});
    return findings;
}

Finding program(const char* name, const char* use) {
    const auto found = find_program(name, search_path(current_environment()));
    return {.name = name,
            .verdict = found ? Verdict::ok : Verdict::note,
            .found = found ? found->string() : "not on PATH",
            .advice = found ? "" : use};
}

} // namespace

std::vector<Finding> diagnose(const fs::path& prefix, const std::string& default_python) {
    std::vector<Finding> findings = {
        kernel(),
        user_namespaces(),
        fuse(),
        session_state(),
        staging(),
        updates(),
        resources(),
        python(default_python),
        program("pip", "Not needed. Every environment gets its own."),
        program("uv", "Not needed. Without it, builds use a fixed version of uv from PyPI, or pip."),
        program("git", "Needed only for requirements that name a git repository."),
        program("bash", "Needed for --pre-install, --post-install and --environ."),
        program("apptainer", "Needed only where users cannot create namespaces or use FUSE."),
        program("singularity", "Needed only as an alternative to apptainer.")};
    for (auto& finding : kerberos())
        findings.push_back(std::move(finding));
    for (auto& finding : gpus())
        findings.push_back(std::move(finding));
    if (!prefix.empty()) findings.push_back(place(prefix));
    return findings;
}

Finding diagnose_programs(const fs::path& prefix, const fs::path& libexec) {
    const std::string name = "installation";
    const auto manifest = manifest::read_manifest(prefix);
    if (!manifest)
        return {.name = name,
                .verdict = Verdict::note,
                .found = printable_line(prefix.string()) + " cannot be used",
                .advice = to_string(manifest.error())};
    const auto programs = prefix::programs_of(*manifest, prefix, libexec);
    const auto command = prefix::command_to_upgrade(programs, prefix);
    Finding finding{.name = name,
                    .found = fmt::format("{}, with the programs of containerize {}",
                                         printable_line(prefix.string()), printable_line(programs.version))};
    if (const auto difference = prefix::difference(programs); !difference.empty()) {
        finding.verdict = Verdict::note;
        finding.advice = "They are " + difference + "." +
                         (command.empty() ? " Use that version to change the installation."
                                          : " `" + printable_line(command) + "` replaces them.");
    }
    return finding;
}

} // namespace containerize::diagnosis

#include "session/session.h"

#include "container/host_root.h"
#include "core/cpus.h"
#include "core/entries.h"
#include "core/fd_message.h"
#include "core/filesystem.h"
#include "core/open_file.h"
#include "core/ownership.h"
#include "core/resources.h"
#include "core/text.h"
#include "core/variables.h"
#include "launch/control_message.h"
#include "launch/namespace.h"
#include "launch/session_state.h"
#include "manifest/launch_settings.h"
#include "manifest/manifest.h"
#include "root/root.h"
#include "session/logind.h"
#include "session/mounted_image.h"
#include "session/ssh_settings.h"
#include "session/start_guard.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace containerize::session {

namespace {

using Clock = std::chrono::steady_clock;

/// How long an idle session waits for work before it ends, and the page cache of its mounts is lost.
constexpr std::chrono::seconds default_idle{600};
constexpr std::uint64_t fewest_files = 64;
constexpr int largest_idle = 7 * 24 * 3600;
/// How long a session that lacks descriptors or memory answers nobody.
constexpr std::chrono::seconds pause_of_listening{1};

/// In the session's directory: the mount point for assembling a root.
constexpr const char* root_name_here = "root";

std::chrono::seconds idle_time() {
    const auto seconds = to_number<int>(variable("CONTAINERIZE_SESSION_IDLE")).value_or(-1);
    return seconds < 0 || seconds > largest_idle ? default_idle : std::chrono::seconds(seconds);
}

class Session {
public:
    Session(const SessionArguments& arguments, Fd step, Fd report)
        : arguments_(arguments),
          name_(!arguments.key_of_login.empty() && logins_end_their_processes() ? arguments.key_of_login
                                                                                : arguments.key),
          step_(std::move(step)), report_(std::move(report)) {}

    Status start() {
        TRY(guard_.begin(report_));
        // Held open, so that the kernel does not reuse the inode numbers in this session's name.
        outer_mounts_.reset(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
        outer_user_.reset(open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC));
        state_.path = arguments_.state_path;
        state_.fd = open_private_directory(state_.path);
        if (!state_.fd)
            return fail({.what = "cannot use the directory for session state",
                         .why = "it is not the directory that the launcher opened",
                         .where = state_.path});
        remove_remains();
        if (launch::may_be_ours(state_, name_))
            return fail({.what = "this process may not enter the session that other programs use",
                         .why = "a security policy of this machine or of a sandbox forbids it",
                         .where = own_path(),
                         .hint = "Start the program outside of the sandbox.",
                         .fault = Fault::engine});
        // The launcher could not enter a session of this name, so it does not serve the same processes as we
        // do.
        remove_directory(name_);
        if (mkdirat(state_.fd.get(), name_.c_str(), 0700) != 0)
            return fail_errno("cannot create the session's directory", own_path());
        directory_.reset(
            openat(state_.fd.get(), name_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        log_.reset(openat(directory_.get(), launch::session_log_name,
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
        if (auto done = set_up(); !done) {
            // A missing directory may be the cause, or a killed helper. Another session has both.
            const bool superseded = is_superseded() || outside_.has_ended();
            end_mounts();
            remove_own_directory();
            if (superseded) return fail({.what = launch::superseded_answer});
            return done;
        }
        note("started with " + arguments_.prefix);
        warn_of_mistakes_in(launch::prefetch_variable, manifest::parse_prefetch);
        warn_of_mistakes_in(manifest::stage_variable, manifest::parse_stage_place);
        return {};
    }

    /// Tells the launcher how the start ended, with mistakes of the caller for it to print.
    void report(const Status& started) {
        // Unlocks start.lock, our standard input, for good: processes that were forked have the descriptor,
        // too.
        guard_.end();
        flock(STDIN_FILENO, LOCK_UN);
        dup2(STDERR_FILENO, STDIN_FILENO);
        std::string text = started ? "ok" : launch::answer_for(started.error());
        if (started)
            for (const auto& warning : warnings_)
                text += "\ncontainerize: warning: " + warning;
        [[maybe_unused]] const auto written = write(report_.get(), text.c_str(), text.size() + 1);
        report_.reset();
    }

    int run() {
        auto last_look = Clock::now();
        while (!ended_ || !images_.empty()) {
            auto events = events_to_wait_for();
            poll(events.data(), events.size(), patience());
            forget_clients(events);
            if ((events[0].revents & POLLIN) != 0) collect_servers();
            start_successors();
            if (!ended_ && (events[1].revents & POLLIN) != 0) answer_control();
            if ((events[2].revents & POLLIN) != 0) end_with_step();
            if (!ended_ && Clock::now() - last_look >= tick()) {
                last_look = Clock::now();
                refresh_ssh_settings();
                withdraw_plans();
                end_if_idle();
            }
        }
        return 0;
    }

private:
    [[nodiscard]] std::vector<pollfd> events_to_wait_for() const {
        const bool listens = Clock::now() >= listen_again_;
        std::vector<pollfd> events{
            {.fd = children_.get(), .events = POLLIN, .revents = 0},
            {.fd = listens ? control_.get() : -1, .events = POLLIN, .revents = 0},
            {.fd = step_.get(), .events = POLLIN, .revents = 0},
        };
        for (const auto& probe : probes_)
            for (const auto& one : probe.waiting) // their end is always reported
                events.push_back({.fd = one.client.get(), .events = 0, .revents = 0});
        return events;
    }

    /// Closes the connections of launchers that have ended.
    void forget_clients(std::span<const pollfd> events) {
        const auto has_ended = [events](const Waiting& one) {
            const auto event = std::ranges::find(events, one.client.get(), &pollfd::fd);
            return event != events.end() && event->revents != 0;
        };
        for (auto& probe : probes_)
            if (std::erase_if(probe.waiting, has_ended) > 0) listen_again_ = {};
    }

    /// How often to look whether anybody is in the session.
    [[nodiscard]] std::chrono::milliseconds tick() const {
        return std::clamp<std::chrono::milliseconds>(idle_ / 4, std::chrono::milliseconds(250),
                                                     std::chrono::seconds(30));
    }

    /// For poll(): the time until the next look, or until a successor of a server is due.
    [[nodiscard]] int patience() const {
        std::optional<Clock::time_point> next;
        if (!ended_) next = Clock::now() + tick();
        const auto consider = [&next](const std::optional<Clock::time_point>& due) {
            if (due && (!next || *due < *next)) next = due;
        };
        for (const auto& image : images_)
            consider(image.served().successor_due());
        if (base_) consider(base_->successor_due());
        if (!ended_ && listen_again_ > Clock::now()) consider(listen_again_);
        if (!next) return -1;
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
        return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    }

    // Needed where Slurm does not kill all that a step has started, and when an interactive shell's
    // allocation ends. Processes that go on keep the session.
    void end_with_step() {
        step_.reset();
        idle_ = std::chrono::seconds(0);
        note("the job step has ended");
        end_if_idle();
    }

    Status set_up() {
        // With fewer it might start and then be unable to end: it looks in /proc whether anybody is in it.
        TRY(allow_open_files(fewest_files));
        outside_ = TRY(mounts::OutsideView::keep());
        TRY(launch::enter_namespaces());
        mounts_ = launch::mount_namespace_of("self");
        inside_link_ = launch::inside_link_name(launch::own_identity({}));

        sigset_t signals;
        sigemptyset(&signals);
        for (const int signal : {SIGCHLD, SIGTERM})
            sigaddset(&signals, signal);
        sigprocmask(SIG_SETMASK, &signals, nullptr);
        children_.reset(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
        if (!children_) return fail_errno("cannot watch server processes");
        mounts::set_server_cleanup([this] { close_supervisor_files(); });

        TRY(set_up_root());
        ssh_settings_.emplace(own_path(), outside_.look());
        refresh_ssh_settings();
        auto installation = TRY(open_installation(arguments_.prefix, first_ ? &*first_ : nullptr));
        first_.reset();
        TRY(mount(std::move(installation)));
        TRY(listen_for_requests());
        guard_.end();
        if (is_superseded()) return fail({.what = launch::superseded_answer});
        unlinkat(state_.fd.get(), inside_link_.c_str(), 0);
        if (symlinkat(name_.c_str(), state_.fd.get(), inside_link_.c_str()) != 0)
            return fail_errno("cannot announce the session", state_.path + "/" + inside_link_);
        // Last: from now on launchers find this session.
        lock_.reset(
            openat(directory_.get(), launch::lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!lock_ || !launch::lock_byte(lock_.get(), launch::supervisor_byte, F_WRLCK))
            return fail_errno("cannot lock the session", own_path() + "/" + launch::lock_name);
        return {};
    }

    [[nodiscard]] std::string own_path() const { return state_.path + "/" + name_; }

    void refresh_ssh_settings() {
        for (const auto& path : ssh_settings_->refresh())
            note("shown with the user as owner, for ssh: " + path);
    }

    /// Whether another session may have taken our place. Our standard input is start.lock, locked for us by
    /// the launcher, and unlocked if the start was blocked for too long (StartGuard).
    [[nodiscard]] bool is_superseded() const {
        return flock(STDIN_FILENO, LOCK_EX | LOCK_NB) != 0 || !directory_has_its_name();
    }

    /// Assembles the root for the first installation; all others in this session need the same root.
    Status set_up_root() {
        if (launch::root_in_name(name_).empty()) return {};
        first_ = TRY(open_installation(arguments_.prefix));
        first_->directory.reset(); // of the root that is left now
        auto request = TRY(root_request(first_->manifest));
        const auto work = own_path() + "/" + root_name_here;
        if (mkdir(work.c_str(), 0700) != 0) return fail_errno("cannot create a directory", work);
        auto root = TRY(root::enter_root(request, work));
        base_ = std::move(root.base);
        root_environment_ = std::move(root.environment);
        for (const auto& line : root.notes)
            note(line);
        for (const auto& line : root.warnings)
            warn(line);
        return {};
    }

    [[nodiscard]] Result<root::RootRequest> root_request(manifest::Manifest manifest) const {
        root::RootRequest request{.base = manifest.settings.base,
                                  .needed = {arguments_.prefix},
                                  .binds = manifest.settings.binds,
                                  .user = variable("USER"),
                                  .home = variable("HOME"),
                                  .shell = variable("SHELL")};
        auto asked = TRY(root::binds_of_environment());
        request.binds.insert(request.binds.end(), asked.begin(), asked.end());
        if (!request.base.is_host()) request.offered = root::binds_of_other_tools();
        manifest.settings.gpu = root::wanted_gpu(manifest);
        if (!request.base.is_host())
            request.inject = [this, manifest = std::move(manifest)](const image::TreeView& view) {
                return root::find_drivers(view, manifest, arguments_.prefix);
            };
        return request;
    }

    Status listen_for_requests() {
        control_.reset(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const auto address = launch::control_address(directory_);
        if (!control_ ||
            bind(control_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
            listen(control_.get(), SOMAXCONN) != 0)
            return fail_errno("cannot listen for requests", own_path() + "/" + launch::control_name);
        return {};
    }

    Status mount(InstallationOnDisk installation) {
        auto mounted =
            TRY(MountedImage::mount(std::move(installation), images_, root_environment_, outside_));
        images_.push_back(std::move(mounted));
        for (const auto& line : images_.back().notes())
            note(line);
        if (auto written = write_plan(images_.back().plan()); !written) {
            give_up(images_.end() - 1);
            return written;
        }
        return {};
    }

    // Written to another name and renamed: a launcher sees a complete plan or none.
    [[nodiscard]] Status write_plan(const launch::LaunchPlan& plan) const {
        const std::string bytes = launch::to_bytes(plan);
        const std::string file = launch::plan_file_name(plan.prefix);
        const std::string temporary = file + ".new";
        const Fd out(
            openat(directory_.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        errno = out ? ENOSPC : errno; // a short write does not set it
        if (out && write(out.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
            renameat(directory_.get(), temporary.c_str(), directory_.get(), file.c_str()) == 0)
            return {};
        const bool full = errno == ENOSPC || errno == EDQUOT;
        auto failed = fail_errno("cannot write the launch plan", own_path() + "/" + file);
        if (full)
            failed.error().hint =
                "Free some space on that filesystem. Each program needs its launch plan to start.";
        unlinkat(directory_.get(), temporary.c_str(), 0);
        return failed;
    }

    /// Removes a mount that no launcher could use. Its server ends by itself.
    void give_up(std::vector<MountedImage>::iterator image) {
        image->served().unmount();
        if (image->served().server() == 0) forget(image);
    }

    void answer_control() {
        Fd client(accept4(control_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        // Without descriptors or memory for it, the connection stays pending: polled at once, it would be a
        // busy loop.
        if (!client && errno != EAGAIN) listen_again_ = Clock::now() + pause_of_listening;
        if (!client) return;
        launch::set_patience(client, 5);
        ucred peer{};
        socklen_t size = sizeof peer;
        if (getsockopt(client.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid())
            return;
        std::string request(launch::control_message_size, '\0');
        const auto got = recv(client.get(), request.data(), request.size(), 0);
        if (got <= 0) return;
        request.resize(static_cast<std::size_t>(got));
        const auto asked = launch::parse_request(request);
        if (!asked)
            reply(client, "unknown request");
        else if (asked->verb == launch::ControlVerb::mount)
            mount_when_it_answers(std::move(client), asked->prefix, peer.pid);
        else
            reply(client, answer_statistics(asked->prefix));
    }

    static void reply(const Fd& client, const std::string& answer) {
        send(client.get(), answer.data(), std::min(answer.size(), launch::control_message_size),
             MSG_NOSIGNAL);
    }

    /// Opening files may block for ever on some filesystems. That must block only the launcher and a process
    /// for it, but not the supervisor, which has to answer others and replace servers.
    void mount_when_it_answers(Fd client, const std::string& prefix, pid_t caller) {
        auto probe = std::ranges::find(probes_, prefix, &Probe::prefix);
        if (probe == probes_.end()) {
            const pid_t process = start_probe(prefix);
            if (process < 0)
                return reply(client, launch::answer_for(fail_errno("cannot start a process").error()));
            probe = probes_.insert(probe, {.process = process, .prefix = prefix, .waiting = {}});
        }
        probe->waiting.push_back({.client = std::move(client), .caller = caller});
    }

    /// Starts a process that reads what mounting reads, and then exits. Returns what fork() does.
    pid_t start_probe(const std::string& prefix) {
        const pid_t parent = getpid();
        const pid_t pid = fork();
        if (pid != 0) return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        close_supervisor_files();
        if (const auto manifest = manifest::read_manifest(prefix))
            std::ignore = manifest::open_layers(*manifest, prefix);
        _exit(0);
    }

    /// Answers the launchers that wait for this probe; returns false if it is none.
    bool answer_waiting(pid_t process) {
        const auto found = std::ranges::find(probes_, process, &Probe::process);
        if (found == probes_.end()) return false;
        const auto ended = std::move(*found);
        probes_.erase(found);
        for (const auto& one : ended.waiting)
            reply(one.client, answer_mount(ended.prefix, one.caller));
        return true;
    }

    [[nodiscard]] const MountedImage* find_mounted(const std::string& prefix) const {
        const auto found = std::ranges::find_if(images_, [&](const MountedImage& image) {
            return image.plan().prefix == prefix && !image.mount_points().empty();
        });
        return found == images_.end() ? nullptr : &*found;
    }

    /// Writes the plan of a mounted installation again: two launchers may have asked at once, or the plan was
    /// removed or is damaged.
    std::string answer_known(const MountedImage& image) {
        if (!image.current()) return answer_stale();
        if (auto written = write_plan(image.plan()); !written) return launch::answer_for(written.error());
        return launch::mounted_answer;
    }

    std::string answer_mount(const std::string& prefix, pid_t caller) {
        if (const auto* known = find_mounted(prefix)) return answer_known(*known);
        // Either its filesystem was mounted after we started and did not propagate to our namespace, or it
        // now needs another root.
        if (const auto root = launch::root_key(prefix);
            !manifest::is_installation(prefix) || (!root.empty() && root != launch::root_in_name(name_)))
            return answer_stale();
        auto installation = open_installation(prefix);
        if (!installation) return answer_refused(prefix, installation.error());
        // A caller that is inside can have no other session.
        const bool is_inside =
            launch::mount_namespace_of(std::to_string(caller)) == launch::mount_namespace_of("self");
        // A new root would disturb running programs, so that a new session is better.
        if (!is_inside && mounts::namespace_in_use(mounts_) &&
            MountedImage::needs_new_root(installation->manifest))
            return answer_stale();
        if (auto done = mount(std::move(*installation)); !done) {
            // Without the helper, no directory is trusted. Another session has a helper.
            if (!is_inside && outside_.has_ended()) return answer_stale();
            return answer_refused(prefix, done.error());
        }
        note("mounted " + prefix);
        return launch::mounted_answer;
    }

    std::string answer_stale() {
        retire();
        return launch::stale_answer;
    }

    std::string answer_refused(const std::string& prefix, const Error& error) {
        note("cannot mount " + prefix + ": " + to_string(error));
        return launch::answer_for(error);
    }

    [[nodiscard]] std::string answer_statistics(const std::string& prefix) const {
        const auto* known = find_mounted(prefix);
        if (known == nullptr) return "this session does not have the installation";
        const auto* statistics = known->statistics();
        return statistics == nullptr ? "the kernel mounts its image" : to_json(*statistics);
    }

    // Makes way for a new session: programs inside keep the images that they have; new launches get that
    // session.
    void retire() {
        std::string retired = "old-" + inside_link_;
        if (const auto root = launch::root_in_name(name_); !root.empty())
            retired.append(1, launch::root_separator).append(root);
        if (name_ == retired || !directory_has_its_name()) return;
        remove_directory(retired);
        if (renameat(state_.fd.get(), name_.c_str(), state_.fd.get(), retired.c_str()) != 0) return;
        name_ = retired;
        unlinkat(state_.fd.get(), inside_link_.c_str(), 0);
        symlinkat(name_.c_str(), state_.fd.get(), inside_link_.c_str());
        note("new launches use another session");
    }

    /// Removes the plans of images that are no longer in place, so that launchers ask for them. The next one
    /// then gets another session (answer_known).
    void withdraw_plans() {
        const auto table = mounted_filesystems();
        if (table.empty()) return; // it could not be read
        std::set<std::string> missing;
        for (const auto& image : images_)
            if (!image.served().in_place(table)) missing.insert(image.plan().prefix);
        // Before Linux 5.8, lines may be missing while others unmount: only two looks are sure.
        for (const auto& prefix : missing)
            if (missing_.contains(prefix))
                unlinkat(directory_.get(), launch::plan_file_name(prefix).c_str(), 0);
        missing_ = std::move(missing);
    }

    void collect_servers() {
        signalfd_siginfo info{};
        while (read(children_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
            if (info.ssi_signo == SIGTERM) idle_ = std::chrono::seconds(0);
        int status = 0;
        for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (base_ && base_->server() == pid) {
                note_death("the base", status);
                keep_base(base_->on_server_exit(status));
                continue;
            }
            if (outside_.on_exit(pid)) {
                note("the process that looks up the owners of files has ended");
                retire(); // the next launch starts a session that can trust them
                continue;
            }
            if (answer_waiting(pid)) continue;
            const auto image = std::ranges::find_if(
                images_, [pid](MountedImage& one) { return one.served().server() == pid; });
            if (image == images_.end()) continue;
            if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
                // Unmounted everywhere, and the last file closed.
                forget(image);
                continue;
            }
            auto& served = image->served();
            const auto refused = served.refused();
            note_death(image->plan().prefix, status);
            if (auto kept = served.on_server_exit(status); !kept) {
                note(to_string(kept.error()));
                forget(image);
            } else if (served.refused() > refused) {
                note("a request that repeatedly killed servers now fails");
            }
        }
    }

    void note_death(const std::string& of, int status) const {
        note("the server of " + of + " died" +
             (WIFSIGNALED(status) ? " of signal " + std::to_string(WTERMSIG(status)) : std::string()));
    }

    void start_successors() {
        for (auto image = images_.begin(); image != images_.end();)
            if (auto kept = image->served().revive_when_due(); !kept) {
                note(to_string(kept.error()));
                image = forget(image);
            } else {
                ++image;
            }
        if (base_) keep_base(base_->revive_when_due());
    }

    void keep_base(const Status& kept) {
        if (kept) return;
        note(to_string(kept.error()));
        base_.reset();
        retire(); // nothing can be started in it any more
    }

    std::vector<MountedImage>::iterator forget(std::vector<MountedImage>::iterator image) {
        const std::string prefix = image->plan().prefix;
        image->served().forget_server();
        const auto next = images_.erase(image);
        if (find_mounted(prefix) == nullptr)
            unlinkat(directory_.get(), launch::plan_file_name(prefix).c_str(), 0);
        return next;
    }

    void end_if_idle() {
        if (mounts::namespace_in_use(mounts_)) {
            last_use_ = Clock::now();
            return;
        }
        if (Clock::now() - last_use_ < idle_) return;
        // With both locks held, nobody is starting a session or entering this one, so the second look is
        // final.
        const Fd starts(
            openat(state_.fd.get(), "start.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        // Nobody can find this session any more if somebody removed the state directory.
        const bool state_is_gone = !starts && errno == ENOENT;
        if (!state_is_gone && (!starts || flock(starts.get(), LOCK_EX | LOCK_NB) != 0)) return;
        if (!launch::lock_byte(lock_.get(), launch::entering_byte, F_WRLCK)) return;
        if (mounts::namespace_in_use(mounts_)) {
            launch::lock_byte(lock_.get(), launch::entering_byte, F_UNLCK);
            return;
        }
        remove_own_directory();
        ended_ = true;
        control_.reset();
        end_mounts();
    }

    // Servers end by themselves when the kernel releases the mount: open files, and copies of it in other
    // namespaces, keep both.
    void end_mounts() {
        for (auto& image : images_)
            image.served().unmount();
        // A mount without a server leaves nothing to wait for.
        std::erase_if(images_, [](const MountedImage& image) { return !image.served().is_served(); });
        if (base_) base_->unmount();
    }

    // A cleaner of /tmp may have removed our directory, and another session may have made one of the same
    // name.
    [[nodiscard]] bool directory_has_its_name() const { return is_named(directory_, name_, state_.fd.get()); }

    void remove_own_directory() const {
        if (directory_has_its_name()) remove_directory(name_);
        unlinkat(state_.fd.get(), inside_link_.c_str(), 0);
    }

    // Removes only names that sessions create, in case the directory holds anything else.
    void remove_directory(const std::string& name) const {
        const Fd directory(
            openat(state_.fd.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!directory) return;
        for (const char* file :
             {launch::lock_name, launch::control_name, launch::session_log_name, SshSettings::copy_name})
            unlinkat(directory.get(), file, 0);
        for (const auto& file : names_in(path_of(directory)))
            if (file.starts_with("plan-")) unlinkat(directory.get(), file.c_str(), 0);
        unlinkat(directory.get(), root_name_here, AT_REMOVEDIR);
        unlinkat(state_.fd.get(), name.c_str(), AT_REMOVEDIR);
    }

    // Removes what killed sessions left. Nobody starts or ends a session meanwhile, since start.lock is held.
    // Processes that a killed session left must not take this one for theirs.
    void remove_remains() const {
        const auto names = names_in(path_of(state_.fd));
        for (const auto& name : names)
            if (!name.starts_with(launch::inside_link_start) &&
                !name.starts_with(container::host_root_start) && launch::is_dead(state_, name))
                remove_directory(name);
        for (const auto& name : names)
            if (name.starts_with(launch::inside_link_start) && !leads_to_another_session(name))
                unlinkat(state_.fd.get(), name.c_str(), 0);
    }

    // A link to our own name was a killed session's: numbers of namespaces are reused, and so are session
    // names.
    [[nodiscard]] bool leads_to_another_session(const std::string& link) const {
        const auto name = launch::session_of_link(state_, link);
        return !name.empty() && name != name_ && faccessat(state_.fd.get(), name.c_str(), F_OK, 0) == 0;
    }

    void close_supervisor_files() {
        dup2(STDERR_FILENO, STDIN_FILENO);
        control_.reset();
        step_.reset();
        report_.reset();
        children_.reset();
        probes_.clear();
        outside_ = {};
        for (auto& image : images_)
            image.served().close_devices();
        if (base_) base_->close_devices();
    }

    /// For variables whose mistakes must not keep programs from starting.
    template<class Parse>
    void warn_of_mistakes_in(Variable which, Parse parse) {
        const char* value = value_of(which);
        if (value == nullptr || *value == '\0') return;
        auto parsed = parse(value);
        if (parsed) return;
        parsed.error().where = which.name();
        warn(to_string(parsed.error()));
    }

    void warn(std::string text) {
        note(text);
        warnings_.push_back(std::move(text));
    }

    void note(const std::string& text) const {
        const std::time_t now = std::time(nullptr);
        std::tm parts{};
        gmtime_r(&now, &parts);
        std::array<char, 32> when{};
        std::strftime(when.data(), when.size(), "%Y-%m-%dT%H:%M:%SZ ", &parts);
        const std::string line = when.data() + text + "\n";
        [[maybe_unused]] const auto written = write(log_.get(), line.data(), line.size());
    }

    /// A launcher that waits for its installation to be mounted.
    struct Waiting {
        Fd client;
        pid_t caller = 0;
    };
    struct Probe {
        pid_t process = 0; ///< ends when the installation's filesystem has answered
        std::string prefix;
        std::vector<Waiting> waiting; ///< none are left if they have ended
    };

    SessionArguments arguments_;
    std::string name_; ///< of our directory; changes when we retire
    std::string inside_link_;
    launch::StateDirectory state_;
    Fd outer_mounts_, outer_user_, directory_, lock_, control_, children_, log_;
    Fd step_;   ///< readable when the job step has ended
    Fd report_; ///< the launcher's pipe, until the session has started
    StartGuard guard_;
    mounts::OutsideView outside_;
    std::string mounts_; ///< the session's mount namespace
    std::optional<SshSettings> ssh_settings_;
    std::optional<InstallationOnDisk> first_; ///< until it is mounted, if the root was made for it
    std::optional<mounts::ServedMount> base_;
    std::vector<launch::EnvironmentChange> root_environment_;
    std::vector<std::string> warnings_;
    std::vector<MountedImage> images_;
    std::set<std::string> missing_; ///< prefixes whose images were not in place at the last look
    std::vector<Probe> probes_;
    Clock::time_point listen_again_; ///< until then, nobody can be answered
    std::chrono::seconds idle_ = idle_time();
    Clock::time_point last_use_ = Clock::now();
    bool ended_ = false;
};

// Resets what the launcher that happened to start the session had: its terminal, its directory, the CPU that
// its rank is bound to, its memory policy, signal settings and soft limits.
void daemonize() {
    setsid();
    if (chdir("/") != 0) _exit(1);
    for (int signal = 1; signal < NSIG; ++signal)
        std::signal(signal, SIG_DFL);
    for (const int signal : {SIGHUP, SIGINT, SIGPIPE})
        std::signal(signal, SIG_IGN);
    umask(0077);
    use_all_cpus();
    syscall(SYS_set_mempolicy, MPOL_DEFAULT, nullptr, 0);
    // The C library has no ioprio_set(): 1 is IOPRIO_WHO_PROCESS, and 0 the class that follows the niceness.
    syscall(SYS_ioprio_set, 1, 0, 0);
    // The kernel applies some limits to a user namespace and all that will ever be in it. Hard limits, which
    // nobody can raise, are part of the session's name.
    for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
        const auto which = static_cast<__rlimit_resource_t>(resource);
        rlimit limit{};
        if (getrlimit(which, &limit) != 0) continue;
        limit.rlim_cur = limit.rlim_max;
        setrlimit(which, &limit);
    }
    const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
    setrlimit(RLIMIT_CORE, &no_core);
    // After the limits: that of niceness decides whether a process can leave SCHED_IDLE.
    const sched_param usual{.sched_priority = 0};
    sched_setscheduler(0, SCHED_OTHER, &usual);
}

/// Otherwise the session, or the threads of its servers, would die without a word.
Status check_stack() {
    constexpr rlim_t least_stack = 128U << 10U;
    rlimit stack{};
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_max >= least_stack) return {};
    return fail({.what = "the limit of the stack's size is too low",
                 .why = "it must be at least " + std::to_string(least_stack / 1024) + " KiB, and it is " +
                        std::to_string(stack.rlim_max / 1024) + " KiB",
                 .hint = "`ulimit -Hs` shows the limit. An administrator can raise it."});
}

} // namespace

int run_session(const SessionArguments& arguments, Fd step, Fd report) {
    daemonize();
    Session session(arguments, std::move(step), std::move(report));
    auto started = check_stack();
    if (started) started = session.start();
    session.report(started);
    return started ? session.run() : 1;
}

} // namespace containerize::session

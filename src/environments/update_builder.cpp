// Mounts an installation's images with a writable layer over them and changes the environment in it.
#include "conda/virtual_packages.h"
#include "core/filesystem.h"
#include "environments/activation.h"
#include "environments/byte_code.h"
#include "environments/conda_change.h"
#include "environments/conda_contents.h"
#include "environments/environ_script.h"
#include "environments/environment_builder.h"
#include "environments/pip_part.h"
#include "environments/writable_images.h"
#include "prefix/states.h"
#include "util/json.h"
#include "util/log.h"
#include "util/timings.h"

#include <algorithm>
#include <functional>
#include <map>
#include <ranges>
#include <set>
#include <utility>

#include <termios.h>
#include <unistd.h>

namespace containerize::environments {

namespace {

using launch::EnvironmentChange;
using manifest::Manifest;

class UpdateBuilder : public EnvironmentBuilder {
public:
    UpdateBuilder(BuildContext& context, const Manifest& previous, const UpdateRequest& request)
        : context_(context), previous_(previous), request_(request),
          of_conda_(previous.build.contains("conda_packages")), pip_(context) {}

    Status create() override {
        Stage stage("Mounting the environment");
        images_ = TRY(WritableImages::mount(context_, previous_));
        bare_environment_ = context_.environment;
        for (const auto* changes : {&previous_.activation, &previous_.environment})
            context_.environment = with_changes(context_.environment, *changes, context_.prefix);
        python_name_ = TRY(name_of_python(context_));
        if (has_pylock()) remember_pylock();
        // What a new lock says is known first.
        if (of_conda_ && !context_.inputs.locked) pip_.remember(earlier_lock());
        stage.finish("state " + std::to_string(previous_.state));
        return {};
    }

    Status install() override {
        // A lock first removes what it does not list.
        if (!context_.inputs.locked) TRY(add_uv());
        if (!context_.inputs.spec.empty()) TRY(install_spec());
        for (const auto& [file, read] : context_.inputs.more_requirements)
            TRY(install_file(file, read));
        return run_command();
    }

    /// Software that was wrapped may contain anything.
    [[nodiscard]] fs::path written() const override {
        return of_conda_ || has_pylock() ? images_.written() : context_.root();
    }

    Status compile() override {
        if (python_name_.empty()) return {};
        const auto changed = TRY(images_.changes(context_.options.umask_bits));
        return compile_sources(context_, sources_among(changed.files, python_name_));
    }

    Result<Activation> activation() override {
        if (!of_conda_)
            return Activation{.changes = previous_.activation, .scripts = previous_.activation_scripts};
        // Record from an environment without the activation, in which the scripts would change nothing more.
        Environment environment =
            with_changes(bare_environment_,
                         {{EnvironmentChange::Kind::prepend, "PATH", (context_.prefix / "bin").string()}},
                         context_.prefix);
        std::swap(context_.environment, environment);
        auto recorded = record_activation(context_);
        std::swap(context_.environment, environment);
        return recorded;
    }

    Result<std::string> packages() override {
        contents_ = TRY(read_contents(context_.root(), python_name_));
        if (!of_conda_) return pip_list(contents_.of_pip);
        record_contents(contents_, python_name_, context_);
        return package_list(contents_);
    }

    Result<prefix::LockFile> lock() override {
        if (has_pylock()) return pip_.pylock(contents_.of_pip);
        if (!of_conda_) return prefix::LockFile();
        auto locked = earlier_lock();
        locked.packages.clear();
        locked.requested.clear();
        for (const auto& package : contents_.packages) {
            locked.packages.push_back(package.record);
            if (!package.requested.empty()) locked.requested.emplace(package.record.name, package.requested);
        }
        for (const auto& channel : channels_)
            if (std::ranges::find(locked.channels, channel.url) == locked.channels.end())
                locked.channels.push_back(channel.url);
        if (context_.inputs.conda)
            for (const auto& [name, value] : context_.inputs.conda->variables) {
                std::erase_if(locked.variables, [&](const auto& one) { return one.first == name; });
                locked.variables.emplace_back(name, value);
            }
        pip_.remember(locked);
        pip_.lock(contents_.of_pip, locked);
        return prefix::LockFile{.name = prefix::own_lock_name,
                                .text = spec::lock_text(locked, conda::this_subdir())};
    }

    bool has_changes() override {
        changed_ = images_.changes(context_.options.umask_bits);
        return !changed_ || !changed_->files.empty();
    }

    Result<image::WriteStats> pack(const Progress& progress) override {
        if (!changed_) return fail(std::move(changed_.error()));
        return image::write_changes(*changed_, context_.image(), context_.writer_options(),
                                    [&](std::uint64_t done) { progress(done, 0); });
    }

    [[nodiscard]] std::string python_name() const override { return python_name_; }

    /// Instead of the steps after create().
    Result<UpdatePlan> plan() {
        const auto& inputs = context_.inputs;
        contents_ = TRY(read_contents(context_.root(), python_name_));
        UpdatePlan plan;
        if (!inputs.spec.empty() && !inputs.requirements) TRY(plan_conda(plan));
        // pip's choice depends on what conda's packages will be.
        const bool solvable = plan.changes.empty() && !inputs.locked;
        if (!solvable) {
            plan.unsolved = inputs.pip_lines().size();
            for (const auto& more : inputs.more_requirements)
                plan.unsolved += more.read.lines.size();
            return plan;
        }
        if (inputs.requirements)
            TRY(add_planned(
                pip_.plan_file(inputs.spec, *inputs.requirements, inputs.working_directory, python_name_),
                plan));
        else if (!inputs.pip_lines().empty())
            TRY(add_planned(pip_.plan(inputs.conda->pip, python_name_), plan));
        for (const auto& [file, read] : inputs.more_requirements)
            TRY(add_planned(pip_.plan_file(file, read, inputs.working_directory, python_name_), plan));
        return plan;
    }

private:
    [[nodiscard]] fs::path earlier_record(const char* name) const {
        return context_.prefix / prefix::state_directory(previous_.state) / name;
    }

    Status plan_conda(UpdatePlan& plan) {
        TRY(check_of_conda());
        const auto changes = TRY(plan_changes(context_, request_.prune));
        std::map<std::string, PackageChange> by_name;
        const auto version_of = [](const conda::PackageRecord& record) {
            return PackageChange::Version{
                .version = record.version, .build = record.build, .channel = record.channel};
        };
        for (const auto& one : changes.removed)
            by_name[one.record.name].before = version_of(one.record);
        for (const auto& record : changes.plan.packages) {
            by_name[record.name].after = version_of(record);
            by_name[record.name].size = record.size;
        }
        for (auto& [name, change] : by_name) {
            change.name = name;
            plan.changes.push_back(std::move(change));
        }
        return {};
    }

    Status add_planned(Result<pip::Resolution> planned, UpdatePlan& plan) const {
        const auto resolution = TRY(std::move(planned));
        if (!resolution.obstacle.empty())
            return fail_input("what would be installed is known only after the installation",
                              resolution.obstacle, {},
                              "Leave out --dry-run. `containerize rollback` undoes an update.");
        for (const auto& package : resolution.packages) {
            PackageChange change{.name = package.name,
                                 .of_pip = true,
                                 .after = PackageChange::Version{.version = package.version},
                                 .size = package.size};
            for (const auto* present : {&contents_.of_conda, &contents_.of_pip})
                for (const auto& one : *present)
                    if (pip::normalised_name(one.name) == pip::normalised_name(package.name))
                        change.before = PackageChange::Version{.version = one.version};
            std::erase_if(plan.changes, [&](const auto& one) { // of an earlier file
                return pip::normalised_name(one.name) == pip::normalised_name(change.name);
            });
            plan.changes.push_back(std::move(change));
        }
        std::ranges::sort(plan.changes, {}, &PackageChange::name);
        return {};
    }

    [[nodiscard]] Status check_of_conda() const {
        if (of_conda_) return {};
        return fail_input("this installation has no conda packages", "conda packages cannot be added to it",
                          context_.inputs.spec.string(),
                          "Give a requirements file, or create a new installation.");
    }

    /// The lock of the installed state; an empty one if there is none.
    [[nodiscard]] spec::LockedEnvironment earlier_lock() const {
        auto read = spec::read_locked(earlier_record(prefix::own_lock_name), spec::SpecKind::lock,
                                      {.subdir = conda::this_subdir()});
        return read ? std::move(*read) : spec::LockedEnvironment();
    }

    /// Whether this is an environment of Python without conda packages.
    [[nodiscard]] bool has_pylock() const { return !of_conda_ && context_.record.contains("python"); }

    /// Takes over what the installed state knows of its packages. Those of older versions do not.
    void remember_pylock() {
        const auto file = earlier_record(prefix::pylock_name);
        const auto text = read_file(file);
        if (!text) return;
        if (const auto earlier = pip::parse_pylock(*text, file.string())) pip_.remember(*earlier);
    }

    Status install_spec() {
        if (context_.inputs.requirements)
            return install_file(context_.inputs.spec, *context_.inputs.requirements);
        TRY(check_of_conda());
        if (context_.inputs.locked) TRY(pip_.remove_what_differs(python_name_, earlier_lock()));
        channels_ = TRY(change_packages(context_, request_.prune));
        python_name_ = TRY(name_of_python(context_));
        TRY(keep_variables());
        if (context_.inputs.locked) TRY(add_uv());
        return keeping_installer([&]() -> Status {
            if (context_.inputs.locked) return pip_.install_locked(python_name_, PipPart::Present::goes);
            if (context_.inputs.conda->pip.empty()) return {};
            return pip_.install(context_.inputs.conda->pip, python_name_);
        });
    }

    /// Keeps the recorded installer while `action` runs, which may use another one.
    Status keeping_installer(const std::function<Status()>& action) {
        const auto installer = context_.record.value("installer", "");
        auto done = action();
        if (!installer.empty()) context_.record["installer"] = installer;
        return done;
    }

    // Adds the variables of the input to those that were set before.
    Status keep_variables() const {
        const auto& variables = context_.inputs.variables();
        if (variables.empty()) return {};
        const auto file = context_.root() / "conda-meta/state";
        auto state = parse_json_quietly(read_file(file).value_or("{}"));
        if (!state.is_object()) state = nlohmann::json::object();
        const auto before = state;
        auto& all = state["env_vars"];
        if (!all.is_object()) all = nlohmann::json::object();
        for (const auto& [name, value] : variables)
            all[name] = value;
        if (state == before) return {};
        return write_file(file, state.dump() + "\n");
    }

    Status install_file(const fs::path& file, const spec::Requirements& read) {
        return keeping_installer(
            [&] { return pip_.install_file(file, read, context_.inputs.working_directory, python_name_); });
    }

    Status add_uv() {
        return keeping_installer([&] { return pip_.add_uv(python_name_); });
    }

    Status run_command() {
        if (request_.command.empty()) return {};
        const timings::Span span("Running the command");
        if (is_interactive_shell())
            log::info("You can now change everything below " + context_.prefix.string() +
                      ". `exit` ends the shell and packs your changes.");
        auto command = context_.inside(request_.command);
        command.working_directory = context_.inputs.working_directory;
        auto code = TRY(run_in_foreground(command, is_interactive_shell() ? Keyboard::for_program
                                                                          : Keyboard::interrupts_us));
        if (code == 0 || (is_interactive_shell() && user_wants_to_keep(code))) return {};
        context_.log_has_reason = false;
        return fail({.what = "the command failed",
                     .why = "exit code " + std::to_string(code),
                     .hint = "Nothing was changed."});
    }

    // A shell exits with the status of its last command, which alone must not discard the user's changes.
    [[nodiscard]] bool is_interactive_shell() const {
        static const std::set<std::string> shells = {"bash", "sh",   "dash", "zsh", "ksh",
                                                     "mksh", "fish", "tcsh", "csh"};
        const auto only_options =
            std::ranges::all_of(request_.command | std::views::drop(1), [](const std::string& word) {
                return word.starts_with('-') && word != "-c";
            });
        return isatty(STDIN_FILENO) != 0 && only_options &&
               shells.contains(fs::path(request_.command.front()).filename().string());
    }

    static bool user_wants_to_keep(int code) {
        log::info("The shell ended with exit code " + std::to_string(code) + ". Keep the changes? [y/N]");
        tcflush(STDIN_FILENO, TCIFLUSH); // discard input typed ahead
        char answer = 0;
        return read(STDIN_FILENO, &answer, 1) == 1 && (answer == 'y' || answer == 'Y');
    }

    BuildContext& context_;
    const Manifest& previous_;
    UpdateRequest request_;
    bool of_conda_;
    PipPart pip_;
    WritableImages images_;
    Result<image::Changes> changed_; ///< set by has_changes(), right before pack()
    Environment bare_environment_;
    std::string python_name_;
    std::vector<conda::Channel> channels_;
    CondaContents contents_;
};

} // namespace

std::unique_ptr<EnvironmentBuilder> make_update_builder(BuildContext& context, const Manifest& previous,
                                                        const UpdateRequest& request) {
    return std::make_unique<UpdateBuilder>(context, previous, request);
}

Result<UpdatePlan> plan_update(BuildContext& context, const Manifest& previous, bool prune) {
    UpdateBuilder builder(context, previous, {.command = {}, .prune = prune});
    TRY(builder.create());
    return builder.plan();
}

} // namespace containerize::environments

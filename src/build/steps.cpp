#include "build/steps.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/version.h"
#include "environments/environ_script.h"
#include "gpu/fit.h"
#include "inputs/secrets.h"
#include "inputs/site_environment.h"
#include "prefix/module_files.h"
#include "prefix/publish.h"
#include "prefix/records.h"
#include "prefix/states.h"
#include "prefix/wrappers.h"
#include "root/root.h"
#include "util/log.h"
#include "util/process.h"
#include "util/progress.h"
#include "util/timings.h"

#include <chrono>
#include <optional>

#include <fmt/format.h>

namespace containerize::build {

namespace {

using manifest::Manifest;

class Build {
public:
    Build(const Workplace& place, environments::EnvironmentBuilder& builder, const Manifest* previous,
          unsigned state)
        : context_(place.context), builder_(builder), cleanup_(place.cleanup), lock_(place.lock),
          previous_(previous) {
        if (previous != nullptr) {
            manifest_ = *previous;
            manifest_.parent = previous->state;
            context_.record = previous->build;
            context_.record.erase(prefix::squashed_key); // describes the previous state only
        }
        manifest_.tool_version = this_version;
        manifest_.prefix = lock_.prefix;
        manifest_.state = state;
        manifest_.wrapper_paths = context_.inputs.wrapper_paths;
        // Another update may have changed them before this one had the lock.
        if (previous == nullptr)
            manifest_.settings = context_.inputs.settings;
        else if (context_.options.change_engine)
            manifest_.settings.engine = context_.options.settings.engine;
        if (!context_.inputs.mask.empty()) manifest_.mask = context_.inputs.mask;
    }

    Result<BuildSummary> run() {
        const auto start = std::chrono::steady_clock::now();
        // The steps run in this order, and the first failure ends the build.
        using Step = Status (Build::*)();
        for (const Step step :
             {&Build::create, &Build::run_pre_install, &Build::solve, &Build::fetch, &Build::link,
              &Build::run_link_scripts, &Build::install, &Build::add_venv_support, &Build::run_post_install,
              &Build::remove_secrets, &Build::check_wrapper_paths_exist, &Build::compile,
              &Build::record_environment, &Build::list_packages, &Build::pack, &Build::record_accelerators,
              &Build::publish}) {
            if (interrupted()) return fail_interrupted();
            TRY((this->*step)());
            if (summary_.unchanged) break;
        }
        summary_.prefix = lock_.prefix;
        summary_.state = manifest_.state;
        summary_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return summary_;
    }

private:
    Status create() { return environments::create_environment(builder_, context_); }

    Status run_hook(const std::optional<fs::path>& script, const std::string& title) {
        if (!script) return {};
        Stage stage(title);
        auto outcome = context_.run_hook(*script, stage);
        if (!outcome) {
            if (outcome.error().where.empty()) outcome.error().where = script->string();
            return fail(std::move(outcome.error()));
        }
        stage.finish(script->filename().string());
        return {};
    }
    Status run_pre_install() {
        return run_hook(context_.options.pre_install, "Running the pre-install script");
    }
    Status solve() { return builder_.solve(); }
    Status fetch() { return builder_.fetch(); }
    Status link() { return builder_.link(); }
    Status run_link_scripts() { return builder_.run_scripts(); }
    Status install() { return builder_.install(); }
    Status run_post_install() {
        return run_hook(context_.options.post_install, "Running the post-install script");
    }
    Status remove_secrets() {
        const timings::Span span("Removing secrets");
        const auto python = builder_.python_name();
        return python.empty()
                   ? Status()
                   : inputs::remove_secrets_of_packages(context_.root(), builder_.written(), python);
    }
    Status compile() { return builder_.compile(); }

    // Lets venvs made with this environment's Python build on its packages (see templates/python).
    Status add_venv_support() {
        if (builder_.python_name().empty()) return {};
        const timings::Span span("Adding support for venvs");
        std::error_code failed;
        const auto library = context_.root() / "lib" / builder_.python_name() / "site-packages";
        const auto support = context_.options.share / "python";
        const auto files = entries_below(support, failed);
        if (failed) return fail_errno("cannot read the directory", support.string(), failed.value());
        for (const auto& file : files) {
            const auto copy = library / file.path().lexically_relative(support);
            if (file.is_directory(failed)) {
                fs::create_directories(copy, failed);
            } else if (!same_content(file.path(), copy)) { // avoid needless changes in an update's layer
                // fs::copy_file() first creates a file that its owner cannot read: older fuse-overlayfs (1.4)
                // cannot handle that.
                const auto content = TRY(read_file(file.path()));
                TRY(write_file(copy, content));
            }
            if (failed) break;
        }
        if (failed) return fail_errno("cannot add support for venvs", library.string(), failed.value());
        return {};
    }

    Status record_environment() {
        const timings::Span span("Recording the environment");
        auto activation = TRY(builder_.activation());
        manifest_.activation = std::move(activation.changes);
        manifest_.activation_scripts = std::move(activation.scripts);
        auto environment = TRY(builder_.environment());
        manifest_.environment.insert(manifest_.environment.end(), environment.begin(), environment.end());
        if (context_.options.environ_script) TRY(record_environ_script());
        inputs::add_site_environment(context_.options.site, manifest_.environment);
        return {};
    }

    Status record_environ_script() {
        // The script's results must not refer to the build's TMPDIR, which is removed after the build.
        Environment environment = context_.environment;
        environment.erase("TMPDIR");
        const auto& users_own = context_.inputs.environment;
        if (const auto users = users_own.find("TMPDIR"); users != users_own.end()) environment.insert(*users);
        // The script extends the site's variables, as it would at a launch.
        for (const auto& change :
             launch::with_prefix(context_.options.site.environment, lock_.prefix.string()))
            environment[change.name] = change.value;
        manifest_.environment = TRY(environments::record_script(*context_.options.environ_script,
                                                                lock_.prefix, environment, context_.join));
        return {};
    }

    /// Fails if a wrapper path does not exist. Runs right after the installation, when the paths are known,
    /// so that a typo is reported before the slow steps.
    Status check_wrapper_paths_exist() {
        const auto surroundings = TRY(root::open_tree(context_.inputs.settings.base));
        manifest_.wrapper_paths = TRY(prefix::existing_wrapper_paths(wrapper_request(*surroundings, {}),
                                                                     context_.inputs.optional_wrapper_paths));
        return {};
    }

    [[nodiscard]] prefix::WrapperRequest wrapper_request(const image::TreeView& surroundings,
                                                         fs::path output) const {
        return {.root = context_.root(),
                .surroundings = surroundings,
                .prefix = lock_.prefix,
                .mask = manifest_.mask,
                .paths = manifest_.wrapper_paths,
                .libexec = context_.options.libexec,
                .output = std::move(output),
                .existing = previous_ == nullptr ? fs::path() : lock_.prefix,
                .umask_bits = context_.options.umask_bits};
    }

    Status list_packages() {
        const timings::Span span("Listing packages");
        packages_ = TRY(builder_.packages());
        return add_list_command();
    }

    // `list-packages` is a command that tykky's users know.
    Status add_list_command() const {
        const auto list = context_.root() / "share/containerize/packages.txt";
        const auto command = context_.root() / "bin/list-packages";
        std::error_code failed;
        const bool ours = fs::exists(list, failed);
        if (!ours && packages_.empty()) return {}; // software without a package manager
        if (ours && read_file(list) == packages_) return {};
        if (ours) return write_file(list, packages_);
        if (fs::exists(fs::symlink_status(command, failed))) return {}; // from a package
        for (const auto& file : {list, command})
            TRY(make_directories(file.parent_path()));
        TRY(write_file(list, packages_));
        return write_file(command,
                          "#!/bin/sh\nexec cat \"$(dirname \"$(dirname \"$(realpath "
                          "\"$0\")\")\")/share/containerize/packages.txt\"\n",
                          true);
    }

    Status pack() {
        makes_image_ = previous_ == nullptr || builder_.has_changes();
        if (!makes_image_) {
            summary_.unchanged = same_settings();
            return {};
        }
        Stage stage(previous_ == nullptr ? "Packing the image" : "Packing the changes");
        auto written =
            builder_.pack([&](std::uint64_t done, std::uint64_t total) { stage.advance(done, total); });
        if (!written) return fail(std::move(written.error()));
        for (const auto& path : written->left_out)
            log::detail("left out, because it is not a file: " + path);
        summary_.files = written->files;
        summary_.image_bytes = written->image_bytes;
        if (previous_ == nullptr) {
            context_.record["files"] = written->files;
            context_.record["bytes"] = written->input_bytes;
        }
        stage.finish(fmt::format("{}, {} to {}", counted(written->files, "file"),
                                 human_bytes(written->input_bytes), human_bytes(written->image_bytes)));
        return {};
    }

    /// Notes which GPUs the packages were built for, and warns about those that cannot use the target's:
    /// those for the CUDA version given by --cuda, otherwise those of this machine.
    Status record_accelerators() {
        context_.record.erase("accelerators"); // left over from the previous state
        const auto packages = gpu::accelerated_packages(gpu::DirectoryView(context_.root()));
        for (const auto& package : packages) {
            log::detail(package.title() + ": built for " + package.purpose() + " (" + package.evidence + ")");
            context_.record["accelerators"].push_back(gpu::to_json(package));
        }
        std::optional<gpu::Target> target;
        if (const auto& cuda = context_.options.conda.cuda; !cuda.empty())
            target.emplace(gpu::Vendor::nvidia, cuda);
        const auto host = gpu::discover(gpu::DirectoryView("/"));
        for (const auto& warning : gpu::build_warnings(packages, target, host))
            log::warn(warning);
        return {};
    }

    /// Whether an update leaves all recorded settings as they were.
    [[nodiscard]] bool same_settings() const {
        Manifest as_before = manifest_;
        as_before.state = previous_->state;
        as_before.parent = previous_->parent;
        as_before.tool_version = previous_->tool_version;
        as_before.programs_version = previous_->programs_version;
        return to_text(as_before) == to_text(*previous_);
    }

    Status publish() {
        Stage stage("Publishing");
        auto below = TRY(size_of_image_below());
        TRY(prefix::check_room(lock_, below + summary_.image_bytes));
        auto assembly = TRY(prefix::make_assembly(lock_, cleanup_));
        const auto surroundings = TRY(root::open_tree(context_.inputs.settings.base));
        const auto wrappers = wrapper_request(*surroundings, assembly);
        summary_.commands = TRY(prefix::make_wrappers(wrappers));
        TRY(prefix::add_session(wrappers));
        TRY(add_new_image(assembly, stage));
        manifest_.created = prefix::utc_now("%Y-%m-%dT%H:%M:%SZ");
        TRY(add_records(assembly));
        if (interrupted()) return fail_interrupted();
        std::vector<Manifest> kept;
        if (previous_ != nullptr) kept = TRY(prefix::read_states(lock_.prefix));
        TRY(prefix::publish({.lock = lock_,
                             .assembly = assembly,
                             .manifest = manifest_,
                             .kept = std::move(kept),
                             .staging = context_.staging},
                            cleanup_));
        stage.finish(counted(summary_.commands, "command"));
        return {};
    }

    Status add_new_image(const fs::path& assembly, Stage& stage) {
        if (!makes_image_) return {};
        const auto add = [&](const fs::path& image, prefix::ImageIs image_is, manifest::ImageFile& entry,
                             std::string file) {
            entry.file = std::move(file);
            std::error_code failed;
            const auto size = fs::file_size(image, failed);
            return prefix::add_image(image, image_is, assembly, entry,
                                     [&](std::uint64_t done) { stage.advance(done, size); });
        };
        const auto below = builder_.image_below();
        const auto free_name = prefix::free_image_name(lock_.prefix);
        if (!below.empty()) TRY(add(below, prefix::ImageIs::of_others, manifest_.image, free_name));
        if (previous_ == nullptr && below.empty())
            return add(context_.image(), prefix::ImageIs::of_this_build, manifest_.image, free_name);
        return add(context_.image(), prefix::ImageIs::of_this_build, manifest_.layers.emplace_back(),
                   prefix::layer_file(manifest_.state));
    }

    [[nodiscard]] Result<std::uint64_t> size_of_image_below() const {
        const auto below = builder_.image_below();
        if (below.empty()) return 0;
        std::error_code failed;
        const auto size = fs::file_size(below, failed);
        if (failed) return fail_errno("cannot examine the image", below.string(), failed.value());
        return size;
    }

    Status add_records(const fs::path& assembly) {
        context_.record["command"] = context_.options.command_line;
        context_.record.erase("exclude_newer"); // of the previous state
        if (const auto& cutoff = context_.options.exclude_newer)
            context_.record["exclude_newer"] = cutoff->text();
        if (!context_.inputs.spec.empty()) context_.record["spec"] = context_.inputs.spec.string();
        auto lock = TRY(builder_.lock());
        fs::path previous_lock;
        if (previous_ != nullptr)
            previous_lock = lock_.prefix / prefix::state_directory(previous_->state) / lock.name;
        auto kept = TRY(prefix::keep_records(assembly / prefix::state_directory(manifest_.state),
                                             {.inputs = context_.inputs.kept,
                                              .packages = packages_,
                                              .lock = std::move(lock),
                                              .previous_lock = previous_lock,
                                              .log = log::current()},
                                             context_.options.umask_bits));
        log::continue_in(assembly / prefix::state_directory(manifest_.state) / "build.log");
        TRY(prefix::write_module_files(
            assembly / prefix::state_directory(manifest_.state) / "modulefiles",
            {.prefix = lock_.prefix, .image = manifest_.image.file, .created = manifest_.created}));
        context_.record["inputs"] = std::move(kept);
        manifest_.build = std::move(context_.record);
        return {};
    }

    environments::BuildContext& context_;
    environments::EnvironmentBuilder& builder_;
    prefix::CleanupProcess& cleanup_;
    const prefix::PrefixLock& lock_;
    const Manifest* previous_; ///< the manifest that an update starts from; null for a new installation
    std::string packages_;
    bool makes_image_ = true; ///< false for an update that changes only settings
    Manifest manifest_;
    BuildSummary summary_;
};

} // namespace

Result<BuildSummary> run_steps(const Workplace& place, environments::EnvironmentBuilder& builder,
                               const Manifest* previous) {
    const auto state = TRY(prefix::next_state(place.lock.prefix));
    return Build(place, builder, previous, state).run();
}

} // namespace containerize::build

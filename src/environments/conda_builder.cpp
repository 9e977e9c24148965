// Links conda packages straight into an image and runs scripts and pip in a writable layer over it.
#include "conda/prefix_records.h"
#include "conda/virtual_packages.h"
#include "core/entries.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/text.h"
#include "core/url.h"
#include "environments/activation.h"
#include "environments/byte_code.h"
#include "environments/conda_contents.h"
#include "environments/conda_packages.h"
#include "environments/environment_builder.h"
#include "environments/link_scripts.h"
#include "environments/noarch_byte_code.h"
#include "environments/pip_part.h"
#include "environments/pip_wheels.h"
#include "environments/wheel_linker.h"
#include "environments/writable_images.h"
#include "util/log.h"
#include "util/timings.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <sys/stat.h>

namespace containerize::environments {

namespace {

/// A timestamp that depends on the packages alone, so that the same packages give the same image.
std::uint32_t newest(const std::vector<conda::PackageInfo>& packages) {
    constexpr std::uint64_t first_of_1980 = 315'532'800; // the earliest time that zip archives can hold
    std::uint64_t seconds = first_of_1980;
    for (const auto& package : packages)
        seconds = std::max(seconds, package.record.timestamp / 1000);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(seconds, 0xFFFFFFFF));
}

/// "3.11" of "3.11.4".
std::string minor_version(const std::string& version) {
    const auto parts = split(version, '.');
    return std::string(parts[0]) + (parts.size() > 1 ? "." + std::string(parts[1]) : "");
}

class CondaBuilder : public EnvironmentBuilder {
public:
    explicit CondaBuilder(BuildContext& context)
        : context_(context),
          pip_(context, [this](PipWheels& wheels, Stage& stage) { return link_wheels(wheels, stage); }) {}

    /// Packages are linked into an image, so the prefix is needed only for what the script writes there.
    Status create() override {
        return context_.options.pre_install ? WritableImages::bind_upper(context_) : Status();
    }

    Status solve() override {
        if (const auto& reason = context_.inputs.python.reason; !reason.empty())
            log::info("Python comes from conda (" + reason + ").");
        auto plan = plan_conda(context_.options, context_.inputs);
        if (!plan) return fail(with_reason(std::move(plan.error())));
        plan_ = std::move(*plan);
        return {};
    }

    Status fetch() override {
        auto packages = fetch_packages(context_, plan_);
        if (!packages) return fail(with_reason(std::move(packages.error())));
        packages_ = std::move(*packages);
        return {};
    }

    Status link() override {
        TRY(link_into_image());
        TRY(link_byte_code(context_, packages_, linked_, *writer_));
        TRY(writer_->checkpoint());
        TRY(mount());
        return prepare_environment();
    }

    Status run_scripts() override { return run_link_scripts(context_, linked_.scripts); }

    Status install() override {
        TRY(pip_.add_uv(python_name()));
        if (context_.inputs.locked) {
            TRY(pip_.install_locked(python_name(), PipPart::Present::stays));
        } else if (!context_.inputs.conda->pip.empty()) {
            TRY(pip_.install(context_.inputs.conda->pip, python_name()));
        }
        for (const auto& [file, read] : context_.inputs.more_requirements)
            TRY(pip_.install_file(file, read, context_.inputs.working_directory, python_name()));
        return {};
    }

    [[nodiscard]] fs::path written() const override { return images_.written(); }

    Status compile() override {
        if (!has_python_) return {};
        const auto sources = TRY(sources_to_compile());
        return compile_sources(context_, sources);
    }

    Result<Activation> activation() override {
        if (const auto& variables = context_.inputs.variables(); !variables.empty())
            TRY(write_file(context_.root() / "conda-meta/state", conda::state(variables)));
        return record_activation(context_);
    }

    Result<std::string> packages() override {
        contents_ = TRY(read_contents(context_.root(), python_name()));
        record_contents(contents_, python_name(), context_);
        return package_list(contents_);
    }

    Result<prefix::LockFile> lock() override {
        return prefix::LockFile{.name = prefix::own_lock_name,
                                .text = spec::lock_text(locked(), conda::this_subdir())};
    }
    /// Call packages() before.
    [[nodiscard]] spec::LockedEnvironment locked() const {
        auto locked = lock_of(plan_, context_.inputs);
        locked.packages = linked_.records;
        locked.source_date_epoch = epoch_;
        pip_.lock(contents_.of_pip, locked);
        return locked;
    }

    Result<image::WriteStats> pack(const Progress& progress) override {
        const auto total = images_.copy().empty() ? 0 : linked_.bytes;
        return images_.pack(writer_, context_.image(), writer_options(), context_.options.umask_bits,
                            [&](std::uint64_t done) { progress(done, total); });
    }

    [[nodiscard]] std::string python_name() const override { return has_python_ ? linked_.python_name : ""; }

    /// What install() would install after the steps before it, if the environment was solved. Changes
    /// nothing.
    Result<pip::Resolution> plan_install() {
        pip::Resolution all;
        if (!context_.inputs.conda->pip.empty())
            all = TRY(pip_.plan(context_.inputs.conda->pip, python_name()));
        for (const auto& [file, read] : context_.inputs.more_requirements) {
            if (!all.obstacle.empty()) break;
            auto more = TRY(pip_.plan_file(file, read, context_.inputs.working_directory, python_name()));
            std::ranges::move(more.packages, std::back_inserter(all.packages));
            all.obstacle = std::move(more.obstacle);
        }
        return all;
    }
    [[nodiscard]] const std::vector<conda::PackageRecord>& conda_packages() const { return plan_.packages; }

private:
    [[nodiscard]] image::WriterOptions writer_options() const {
        auto options = context_.writer_options();
        options.source_date_epoch = epoch_;
        return options;
    }

    /// Adds to an error about conda packages why a requirements file needs them.
    [[nodiscard]] Error with_reason(Error error) const {
        const auto& reason = context_.inputs.python.reason;
        if (reason.empty() || interrupted()) return error;
        error.hint += (error.hint.empty() ? "" : "\n") + ("Python would come from conda (" + reason) +
                      "). To use one of the host, give --python its path.";
        return error;
    }

    Status link_into_image() {
        Stage stage("Installing packages");
        auto infos = TRY(read_packages(context_, packages_));
        epoch_ = epoch_of(infos);
        auto writer = TRY(image::Writer::create(context_.image(), writer_options()));
        linked_ = TRY(link_packages(context_, packages_, std::move(infos),
                                    {.prefix = context_.prefix.string(),
                                     .time = epoch_,
                                     .latest = epoch_,
                                     .command_line = "containerize new"},
                                    writer, stage));
        writer_.emplace(std::move(writer));
        stage.finish(summary_of(linked_));
        return {};
    }

    /// Below what link scripts and earlier requirements have changed.
    Result<std::string> link_wheels(PipWheels& wheels, Stage& stage) {
        const auto taken = TRY(images_.taken(context_.options.umask_bits));
        if (!taken) return "the kernel's overlayfs cannot be used";
        if (linked_.site_packages != "lib/" + linked_.python_name + "/site-packages")
            return "this Python has its packages in " + linked_.site_packages;
        TRY(wheels.start());
        if (!wheels.cache_tag().starts_with("cpython-")) return "the interpreter is not CPython";
        if (auto obstacle = TRY(wheels.fetch(stage)); !obstacle.empty()) return obstacle;
        WheelLinker linker(*writer_,
                           {.interpreter = context_.python().string(),
                            .python = minor_version(linked_.python_version),
                            .library_name = linked_.python_name,
                            .cache_tag = wheels.cache_tag(),
                            .layout = wheel::prefix_layout},
                           context_.options.umask_bits);
        if (auto obstacle = TRY(wheels.obstacle_to_linking(linker, *taken)); !obstacle.empty())
            return obstacle;
        const auto add_wheels = [&]() -> Status {
            TRY(wheels.link(linker));
            return writer_->checkpoint();
        };
        TRY(images_.remount(context_, add_wheels));
        modules_of_wheels_.insert(linker.without_byte_code().begin(), linker.without_byte_code().end());
        return std::string();
    }

    [[nodiscard]] std::uint32_t epoch_of(const std::vector<conda::PackageInfo>& packages) const {
        if (context_.inputs.source_date_epoch) return *context_.inputs.source_date_epoch;
        if (context_.inputs.locked && context_.inputs.locked->source_date_epoch)
            return *context_.inputs.locked->source_date_epoch;
        return newest(packages);
    }

    Status mount() {
        const timings::Span span("Mounting the image");
        images_ = TRY(WritableImages::mount(context_, {context_.image()}, {}));
        return {};
    }

    Status prepare_environment() {
        context_.environment["CONDA_PREFIX"] = context_.environment["CONDA_DEFAULT_ENV"] =
            context_.prefix.string();
        context_.environment["CONDA_SHLVL"] = "1";
        // A package named "python" may hold no interpreter, as in test channels.
        std::error_code failed;
        has_python_ = !linked_.python_version.empty() &&
                      fs::exists(fs::symlink_status(context_.root() / "bin/python", failed));
        context_.record["installer"] = "conda";
        return {};
    }

    /// Paths relative to the prefix: sources that packages ship without byte-code, and those added since.
    Result<std::set<std::string>> sources_to_compile() const {
        const auto changed = TRY(images_.changes(context_.options.umask_bits));
        auto sources = sources_among(changed.files, linked_.python_name);
        sources.insert(linked_.to_compile.begin(), linked_.to_compile.end());
        for (const auto& module : modules_of_wheels_)
            if (quiet::exists(context_.root() / module)) sources.insert(module);
        return sources;
    }

    BuildContext& context_;
    CondaPlan plan_;
    std::uint32_t epoch_ = 0;
    std::vector<conda::PackageToLink> packages_;
    conda::Linked linked_;
    bool has_python_ = false;
    WritableImages images_;
    std::optional<image::Writer> writer_;
    std::set<std::string> modules_of_wheels_; ///< without byte-code, relative to the prefix
    PipPart pip_;
    CondaContents contents_;
};

/// Fails if a package of pip is a clone in the environment itself, which is removed.
Status check_lasting(const spec::LockedEnvironment& locked, const BuildContext& context) {
    if (!locked.of_pip) return {};
    for (const auto& one : *locked.of_pip)
        if (one.source.kind == spec::PipSource::Kind::directory &&
            is_below(file_url_path(one.source.url), context.prefix))
            return fail_input("an editable clone cannot be locked without an installation",
                              one.name + " would be cloned into the environment",
                              context.inputs.spec.string(),
                              "Remove -e, or build the installation and use `containerize export`.");
    return {};
}

Status make_conda_part(CondaBuilder& builder, BuildContext& context) {
    TRY(create_environment(builder, context));
    TRY(builder.solve());
    TRY(builder.fetch());
    TRY(builder.link());
    return builder.run_scripts();
}

} // namespace

Result<CondaDryRun> plan_conda_and_pip(BuildContext& context) {
    CondaBuilder builder(context);
    TRY(make_conda_part(builder, context));
    auto of_pip = TRY(builder.plan_install());
    return CondaDryRun{.packages = builder.conda_packages(), .of_pip = std::move(of_pip)};
}

Result<spec::LockedEnvironment> lock_conda_and_pip(BuildContext& context) {
    CondaBuilder builder(context);
    TRY(make_conda_part(builder, context));
    TRY(builder.install());
    TRY(builder.packages());
    auto locked = builder.locked();
    TRY(check_lasting(locked, context));
    return locked;
}

std::unique_ptr<EnvironmentBuilder> make_conda_builder(BuildContext& context) {
    return std::make_unique<CondaBuilder>(context);
}

} // namespace containerize::environments

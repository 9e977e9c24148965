// Creates a venv and installs a requirements file into it.
#include "core/entries.h"
#include "core/filesystem.h"
#include "environments/byte_code.h"
#include "environments/environment_builder.h"
#include "environments/installers.h"
#include "environments/pip_part.h"
#include "environments/pip_wheels.h"
#include "environments/wheel_linker.h"
#include "environments/writable_images.h"
#include "environments/written_requirements.h"
#include "image/unpack.h"
#include "pip/bundle.h"
#include "pip/ensurepip.h"
#include "pip/python_choice.h"
#include "pip/venv.h"
#include "util/log.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace containerize::environments {

namespace {

std::uint64_t bytes_below(const fs::path& root) {
    std::error_code ignored;
    std::uint64_t total = 0;
    constexpr auto unreadable_too = fs::directory_options::skip_permission_denied;
    for (const auto& entry : entries_below(root, ignored, unreadable_too))
        if (entry.is_regular_file(ignored) && !entry.is_symlink(ignored)) total += entry.file_size(ignored);
    return total;
}

Result<std::vector<RequirementsToInstall>> requirements_of(const BuildContext& context) {
    const auto& inputs = context.inputs;
    return requirements_to_install(inputs.spec, *inputs.requirements, inputs.working_directory,
                                   context.staging);
}

/// Resolves requirements in a plain venv. Then links the wheels into an image, over which the following steps
/// work. Where that is not possible, pip or uv installs into the venv, which is packed as it is.
class PipBuilder : public EnvironmentBuilder {
public:
    explicit PipBuilder(BuildContext& context)
        : context_(context), installers_(context), pip_(context), wheels_(context, installers_),
          tree_(context.staging / "root") {}

    Status create() override {
        Stage stage("Creating the environment");
        TRY(make_directories(tree_, "cannot create a staging directory"));
        TRY(context_.space.bind(tree_, context_.prefix, context_.prefix));
        const auto python = TRY(choose_python());
        pip::Interpreter interpreter = *python.interpreter;
        TRY(check_version_of_python(*context_.inputs.requirements, interpreter.version));
        library_name_ = interpreter.standard_library.filename().string();
        const std::string original = interpreter.executable.string();
        const bool bundle = context_.options.bundle_python;
        if (bundle) {
            stage.detail("copying " + original);
            interpreter = TRY(pip::bundle_python(interpreter, {.root = tree_,
                                                               .prefix = context_.prefix,
                                                               .environment = context_.environment,
                                                               .in_child = context_.join}));
        }
        TRY(make_venv(interpreter, stage));
        pip_.remember_venv(pip::read_distributions(site_packages()));
        context_.environment["VIRTUAL_ENV"] = context_.prefix.string();
        context_.record["python"] = {
            {"version", interpreter.version}, {"executable", original}, {"bundled", bundle}};
        stage.finish("Python " + interpreter.version + (bundle ? ", bundled," : "") + " from " + original +
                     " (" + python.reason + ")");
        if (context_.inputs.settings.base.is_host() && !bundle)
            if (const auto warning = pip::warning_about(*python.interpreter); !warning.empty())
                log::warn(warning);
        return {};
    }

    Status solve() override {
        if (!writer_) return {};
        Stage stage("Resolving requirements");
        const auto files = TRY(requirements_of(context_));
        auto obstacle = TRY(wheels_.resolve(files, stage));
        if (obstacle.empty()) obstacle = wheels_.obstacle_in(site_packages(), &*linker_);
        stage.finish(counted(wheels_.packages().size(), "package") + ", with " + installers_.name());
        return obstacle.empty() ? Status() : install_into_directory(obstacle);
    }

    Status fetch() override {
        if (!writer_) return {};
        Stage stage("Packing packages");
        if (const auto obstacle = TRY(wheels_.fetch(stage)); !obstacle.empty())
            return install_into_directory(obstacle);
        stage.finish(counted(wheels_.packages().size(), "package"));
        return {};
    }

    Status link() override {
        if (!writer_) return {};
        Stage stage("Linking packages");
        const auto add_packages = [&]() -> Status {
            TRY(wheels_.link(*linker_));
            return writer_->checkpoint();
        };
        TRY(images_.remount(context_, add_packages));
        pip_.remember(*context_.inputs.requirements, context_.inputs.working_directory, wheels_.packages());
        without_byte_code_ = linker_->without_byte_code();
        context_.record["installer"] = installers_.name();
        stage.finish(counted(linker_->files(), "file") + ", " + human_bytes(linker_->bytes()));
        return {};
    }

    Status install() override {
        if (writer_) return {};
        TRY(pip_.add_uv(library_name_));
        Stage stage(pip_stage);
        for (const auto& one : TRY(requirements_of(context_))) {
            TRY(installers_.install(one, stage));
            TRY(pip_.note(installers_, one.read, one.directory, library_name_));
        }
        stage.finish("with " + installers_.name());
        return {};
    }

    [[nodiscard]] fs::path written() const override { return writer_ ? images_.written() : tree_; }

    Status compile() override {
        if (!writer_) return compile_sources(context_, sources_below(tree_, {"lib"}));
        const auto changed = TRY(images_.changes(context_.options.umask_bits));
        auto sources = sources_among(changed.files, library_name_);
        for (const auto& module : without_byte_code_)
            if (quiet::exists(context_.root() / module)) sources.insert(module);
        return compile_sources(context_, sources);
    }

    Result<Activation> activation() override { return venv_activation(); }

    Result<std::string> packages() override {
        contents_ = TRY(read_contents(context_.root(), library_name_));
        return pip_list(contents_.of_pip);
    }

    Result<prefix::LockFile> lock() override { return pip_.pylock(contents_.of_pip); }

    Result<image::WriteStats> pack(const Progress& progress) override {
        if (writer_)
            return images_.pack(writer_, context_.image(), context_.writer_options(),
                                context_.options.umask_bits, [&](std::uint64_t done) { progress(done, 0); });
        const auto total = bytes_below(tree_);
        return image::write_tree(tree_, context_.image(), context_.writer_options(),
                                 context_.options.umask_bits,
                                 [&](std::uint64_t done) { progress(done, total); });
    }

    // "python3.11"; "python3.13t" for a free-threaded build.
    [[nodiscard]] std::string python_name() const override { return library_name_; }

private:
    /// A host interpreter was checked with the inputs; one in a base can only be checked inside it.
    [[nodiscard]] Result<pip::PythonChoice> choose_python() const {
        if (context_.inputs.settings.base.is_host()) return context_.inputs.python;
        auto interpreter =
            TRY(pip::choose_interpreter_inside(context_.options.python, context_.environment, context_.join));
        TRY(pip::check_venv(interpreter, context_.inputs.uv));
        return pip::PythonChoice{.interpreter = std::move(interpreter), .reason = "of the base"};
    }

    /// The venv, in the image that is mounted at the prefix. Its pip is linked into the image, which takes a
    /// twentieth of the time that ensurepip takes.
    Status make_venv(const pip::Interpreter& interpreter, Stage& stage) {
        std::vector<fs::path> wheels;
        if (interpreter.has_ensurepip)
            wheels = TRY(pip::copy_wheels_for_venvs(interpreter.executable.string(), inside(),
                                                    context_.staging / "wheels-for-venvs"));
        TRY(pip::make_venv({.interpreter = interpreter,
                            .uv = context_.inputs.uv,
                            .prefix = context_.prefix,
                            .system_site_packages = context_.options.system_site_packages,
                            .with_pip = wheels.empty(),
                            .environment = context_.environment,
                            .in_child = context_.join}));
        TRY(compile_sources(context_, sources_below(tree_, {"lib", "python/lib", "python/lib64"})));
        TRY(wheels_.start());
        writer_.emplace(TRY(image::Writer::create(context_.image(), context_.writer_options())));
        TRY(image::add_tree(*writer_, tree_, context_.options.umask_bits));
        linker_.emplace(*writer_,
                        WheelPrefix{.interpreter = context_.python().string(),
                                    .python = fmt::format("{}.{}", interpreter.major, interpreter.minor),
                                    .library_name = library_name_,
                                    .cache_tag = wheels_.cache_tag()},
                        context_.options.umask_bits);
        TRY(wheels_.add_files(wheels, *linker_, stage));
        TRY(writer_->checkpoint());
        images_ = TRY(WritableImages::mount(context_, {context_.image()}, {}));
        const auto obstacle = obstacle_to_linking();
        return obstacle.empty() ? Status() : install_into_directory(obstacle);
    }

    [[nodiscard]] fs::path site_packages() const {
        return context_.root() / "lib" / library_name_ / "site-packages";
    }

    [[nodiscard]] std::function<Command(std::vector<std::string>)> inside() const {
        return [this](std::vector<std::string> argv) { return context_.inside(std::move(argv)); };
    }

    /// From now on. The venv's directory only lacks its pip.
    Status install_into_directory(const std::string& because) {
        log::detail("packages are installed into a directory, because " + because);
        if (images_.copy().empty()) {
            TRY(images_.unmount(context_));
            const auto image = context_.image();
            TRY(image::unpack(std::span(&image, 1), tree_));
        }
        linker_.reset();
        writer_.reset();
        wheels_.stop();
        return {};
    }

    /// Why the packages must be installed into the venv's directory, to follow "because".
    [[nodiscard]] std::string obstacle_to_linking() const {
        if (context_.options.installer == pip::Installer::pip_tree) return "--installer pip-tree asks for it";
        if (context_.options.pre_install) return "the pre-install script may have changed it";
        if (context_.options.uv) return "uv is installed first";
        return {};
    }

    std::string library_name_;
    BuildContext& context_;
    Installers installers_;
    PipPart pip_; ///< what is known for the lock
    CondaContents contents_;
    PipWheels wheels_;
    fs::path tree_;
    std::optional<image::Writer> writer_; ///< empty if packages are installed into the tree
    std::optional<WheelLinker> linker_;
    std::set<std::string> without_byte_code_; ///< modules that were linked so, relative to the prefix
    WritableImages images_;
};

} // namespace

std::unique_ptr<EnvironmentBuilder> make_pip_builder(BuildContext& context) {
    return std::make_unique<PipBuilder>(context);
}

Result<pip::Resolution> plan_pip(BuildContext& context, From from) {
    PipBuilder builder(context);
    TRY(builder.create());
    Stage stage("Resolving pip packages");
    Installers installers(context);
    const auto files = TRY(requirements_of(context));
    auto resolution = TRY(resolve_all(installers, files, context.inputs.spec, stage, from));
    stage.finish("with " + installers.name());
    return resolution;
}

} // namespace containerize::environments

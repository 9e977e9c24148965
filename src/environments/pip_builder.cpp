// Creates a venv and installs a requirements file into it with pip or uv.
#include "core/entries.h"
#include "core/filesystem.h"
#include "environments/byte_code.h"
#include "environments/environment_builder.h"
#include "environments/pip_part.h"
#include "pip/bundle.h"
#include "pip/python_choice.h"
#include "pip/venv.h"
#include "util/log.h"

#include <utility>

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

class PipBuilder : public EnvironmentBuilder {
public:
    explicit PipBuilder(BuildContext& context) : context_(context), tree_(context.staging / "root") {}

    Status create() override {
        Stage stage("Creating the environment");
        TRY(make_directories(tree_, "cannot create a staging directory"));
        TRY(context_.space.bind(tree_, context_.prefix, context_.prefix));
        const auto python = TRY(choose_python());
        pip::Interpreter interpreter = *python.interpreter;
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
        TRY(pip::make_venv({.interpreter = interpreter,
                            .uv = context_.inputs.uv,
                            .prefix = context_.prefix,
                            .system_site_packages = context_.options.system_site_packages,
                            .environment = context_.environment,
                            .in_child = context_.join}));
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

    Status install() override {
        PipPart part(context_);
        TRY(part.add_uv(library_name_));
        return part.install_file(context_.inputs.spec, *context_.inputs.requirements,
                                 context_.inputs.working_directory, library_name_);
    }

    Status compile() override {
        return compile_sources(context_, sources_below(tree_, {"lib", "python/lib", "python/lib64"}));
    }

    Result<Activation> activation() override { return venv_activation(); }

    Result<std::string> packages() override {
        const auto contents = TRY(read_contents(context_.root(), library_name_));
        return pip_list(contents.of_pip);
    }

    Result<image::WriteStats> pack(const Progress& progress) override {
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

    std::string library_name_;
    BuildContext& context_;
    fs::path tree_;
};

} // namespace

std::unique_ptr<EnvironmentBuilder> make_pip_builder(BuildContext& context) {
    return std::make_unique<PipBuilder>(context);
}

} // namespace containerize::environments

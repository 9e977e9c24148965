// Creates a venv and installs a requirements file into it with pip or uv.
#include "core/entries.h"
#include "core/url.h"
#include "environments/environment_builder.h"
#include "environments/installers.h"
#include "environments/pip_part.h"
#include "pip/bundle.h"
#include "pip/venv.h"
#include "util/log.h"

#include <utility>

namespace containerize::environments {

namespace {

namespace fs = std::filesystem;
using launch::EnvironmentChange;

std::uint64_t bytes_below(const fs::path& root) {
    std::error_code ignored;
    std::uint64_t total = 0;
    constexpr auto unreadable_too = fs::directory_options::skip_permission_denied;
    for (const auto& entry : entries_below(root, ignored, unreadable_too))
        if (entry.is_regular_file(ignored) && !entry.is_symlink(ignored)) total += entry.file_size(ignored);
    return total;
}

class PipRecipe : public Recipe {
public:
    explicit PipRecipe(Workshop& shop) : shop_(shop), tree_(shop.staging / "root") {}

    Status create() override {
        Stage stage("Creating the environment");
        std::error_code failed;
        fs::create_directories(tree_, failed);
        if (failed) return fail_errno("cannot make a staging directory", tree_.string(), failed.value());
        if (auto bound = shop_.space.bind(tree_, shop_.prefix, shop_.prefix); !bound) return bound;
        auto chosen = choose_interpreter();
        if (!chosen) return fail(std::move(chosen.error()));
        pip::Interpreter interpreter = std::move(*chosen);
        library_name_ = interpreter.standard_library.filename().string();
        const std::string original = interpreter.executable.string();
        const bool bundle = shop_.options.bundle_python;
        if (bundle) {
            stage.detail("copying " + original);
            auto copy = pip::bundle_python(interpreter, {.root = tree_,
                                                         .prefix = shop_.prefix,
                                                         .environment = shop_.environment,
                                                         .in_child = shop_.join});
            if (!copy) return fail(std::move(copy.error()));
            interpreter = std::move(*copy);
        }
        if (auto made = pip::make_venv({.interpreter = interpreter,
                                        .uv = shop_.inputs.uv,
                                        .prefix = shop_.prefix,
                                        .system_site_packages = shop_.options.system_site_packages,
                                        .environment = shop_.environment,
                                        .in_child = shop_.join});
            !made)
            return made;
        shop_.environment["VIRTUAL_ENV"] = shop_.prefix.string();
        shop_.record["python"] = {
            {"version", interpreter.version}, {"executable", original}, {"bundled", bundle}};
        stage.finish("Python " + interpreter.version + (bundle ? ", bundled," : "") + " from " + original);
        return {};
    }

    Status install() override {
        for (const auto& editable : shop_.inputs.requirements.editable) {
            const bool is_cloned = is_url(editable) && !editable.starts_with("file:");
            if (is_cloned) continue; // cloned into the environment
            log::info("Note: '" + editable +
                      "' is installed as editable: it stays where it is, outside the image.");
        }
        if (auto added = PipPart(shop_).add_uv(library_name_); !added) return added;
        Stage stage(pip_stage);
        Installers installers(shop_);
        if (auto installed = installers.install({.file = shop_.inputs.spec,
                                                 .read = shop_.inputs.requirements,
                                                 .directory = shop_.inputs.working_directory,
                                                 .constraints = {}},
                                                stage);
            !installed)
            return installed;
        stage.finish("with " + installers.name());
        return {};
    }

    // Unchecked hashes: no run compares timestamps or compiles again, even if packing changes timestamps.
    Status compile() override {
        Stage stage("Compiling byte-code");
        std::vector<std::string> argv = {shop_.python().string(),
                                         "-m",
                                         "compileall",
                                         "-q",
                                         "-f",
                                         "-j",
                                         std::to_string(shop_.jobs),
                                         "--invalidation-mode",
                                         "unchecked-hash",
                                         (shop_.prefix / "lib").string()};
        if (shop_.options.bundle_python) argv.push_back((shop_.prefix / "python/lib").string());
        auto outcome = containerize::run(shop_.inside(argv));
        if (!outcome) return fail(std::move(outcome.error()));
        // Packages ship templates and tests for other Python versions as .py files. Failures to compile these
        // are harmless.
        stage.finish(outcome->ok() ? "all modules"
                                   : "all modules but some that are not Python (see the log)");
        return {};
    }

    Result<std::vector<EnvironmentChange>> activation() override { return venv_activation(); }

    Result<std::string> packages() override {
        auto listed =
            capture(shop_.inside({shop_.python().string(), "-m", "pip", "list", "--format", "freeze"}));
        if (!listed) return fail(std::move(listed.error()));
        // A script may have removed pip; then there is no list.
        return listed->ok() ? std::move(listed->output) : std::string();
    }

    Result<image::WriteStats>
    pack(const std::function<void(std::uint64_t, std::uint64_t)>& progress) override {
        const auto total = bytes_below(tree_);
        return image::write_tree(tree_, shop_.image(), shop_.writer_options(), shop_.options.umask_bits,
                                 [&](std::uint64_t done) { progress(done, total); });
    }

    // "python3.11"; "python3.13t" for a free-threaded build.
    [[nodiscard]] std::string python_name() const override { return library_name_; }

private:
    /// A host interpreter was checked with the inputs; one in a base can only be checked inside it.
    [[nodiscard]] Result<pip::Interpreter> choose_interpreter() const {
        if (shop_.inputs.base.is_host()) return shop_.inputs.interpreter;
        auto interpreter =
            pip::choose_interpreter_inside(shop_.options.python, shop_.environment, shop_.join);
        if (!interpreter) return interpreter;
        if (auto good = pip::check_venv(*interpreter, shop_.inputs.uv); !good)
            return fail(std::move(good.error()));
        return interpreter;
    }

    std::string library_name_;
    Workshop& shop_;
    fs::path tree_;
};

} // namespace

std::unique_ptr<Recipe> make_pip_recipe(Workshop& shop) {
    return std::make_unique<PipRecipe>(shop);
}

} // namespace containerize::environments

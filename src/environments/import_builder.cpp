// Takes over tykky's image unchanged and adds a layer that adapts its environment to this tool.
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "environments/activation.h"
#include "environments/conda_contents.h"
#include "environments/environ_script.h"
#include "environments/environment_builder.h"
#include "environments/writable_images.h"
#include "util/log.h"

#include <algorithm>
#include <array>
#include <utility>

namespace containerize::environments {

namespace {

using launch::EnvironmentChange;

/// The variables that a program in tykky's container would see: SINGULARITYENV_X outside becomes X inside.
Environment inside_container(const Environment& outside) {
    constexpr std::array<std::string_view, 2> for_inside = {"SINGULARITYENV_", "APPTAINERENV_"};
    constexpr std::array<std::string_view, 3> of_wrappers = {"SINGULARITY_", "APPTAINER_", "_CW_"};
    Environment inside;
    Environment given;
    for (const auto& [name, value] : outside) {
        const auto starts = [&name = name](std::string_view start) { return name.starts_with(start); };
        if (const auto* start = std::ranges::find_if(for_inside, starts); start != for_inside.end())
            given[name.substr(start->size())] = value;
        else if (std::ranges::none_of(of_wrappers, starts))
            inside.emplace(name, value);
    }
    for (auto& [name, value] : given)
        inside[name] = std::move(value);
    return inside;
}

class ImportBuilder : public EnvironmentBuilder {
public:
    explicit ImportBuilder(BuildContext& context) : context_(context), tykky_(*context.inputs.tykky) {}

    Status create() override {
        Stage stage("Mounting the image");
        images_ = TRY(WritableImages::mount(context_, {tykky_.image}, tykky_.path_inside));
        TRY(find_environment());
        std::error_code failed;
        if (environment_ != ".") // our own files go there
            fs::create_directory(context_.root() / environment_ / "share", failed);
        TRY(inputs::link_environment(context_.root(), environment_));
        if (tykky_.mode != "wrapdisk") TRY(find_python());
        context_.record["tykky"] = inputs::record_of(tykky_, environment_);
        if (tykky_.mode == "wrapdisk") context_.record["source"] = tykky_.path_inside.string();
        stage.finish(tykky_.mode + ", created for " + tykky_.path_inside.string());
        return {};
    }

    /// Also by tykky, which keeps logins.
    [[nodiscard]] fs::path written() const override { return context_.root(); }

    Result<Activation> activation() override {
        if (tykky_.mode == "venv") return venv_activation();
        if (tykky_.mode == "wrapdisk") return path_activation();
        return record_activation(context_);
    }

    // The variables that tykky's wrappers set at each launch. The user's --environ script is included, at the
    // end of tykky's common.sh.
    Result<std::vector<EnvironmentChange>> environment() override {
        const auto script = context_.staging / "environment-of-tykky.sh";
        // tykky ignores the exit status of the script's last command.
        TRY(write_file(script, ". \"$DIR/../common.sh\"\nreturn 0\n"));
        Environment environment = context_.inputs.environment;
        environment["DIR"] = (tykky_.directory / "bin").string();
        environment["OLD_PATH"] = environment["PATH"];
        environment["LD_LIBRARY_PATH"] =
            "/containerize-trial/lib"; // makes extensions of the variable recognisable
        auto before = TRY(source_script({}, context_.prefix, environment, context_.join));
        auto after = TRY(source_script(script, context_.prefix, environment, context_.join));
        if (after.output.empty())
            return fail({.what = "cannot record the variables that it sets at each launch",
                         .why = tail(after.errors, 12),
                         .where = (tykky_.directory / "common.sh").string(),
                         .hint = "Replace `exit` with `return` in the script for --environ, which is at the "
                                 "end of this file."});
        auto changes = difference(inside_container(parse_listing(before.output)),
                                  inside_container(parse_listing(after.output)), context_.prefix);
        // A new value, as opposed to an extension, only makes sense inside tykky's container.
        std::erase_if(changes, [](const EnvironmentChange& change) {
            const bool extends = change.kind == EnvironmentChange::Kind::prepend ||
                                 change.kind == EnvironmentChange::Kind::append;
            return !extends && (change.name == "PATH" || change.name == "LD_LIBRARY_PATH");
        });
        return changes;
    }

    Result<std::string> packages() override {
        if (tykky_.mode == "wrapdisk") return std::string();
        auto contents = TRY(read_contents(context_.root(), python_name_));
        if (tykky_.mode == "conda") {
            context_.record["conda_packages"] = contents.packages.size();
            return package_list(contents);
        }
        return pip_list(contents.of_pip);
    }

    [[nodiscard]] fs::path image_below() const override { return tykky_.image; }

    Result<image::WriteStats> pack(const Progress& progress) override {
        auto changes = TRY(images_.changes(context_.options.umask_bits));
        return image::write_changes(changes, context_.image(), context_.writer_options(),
                                    [&](std::uint64_t done) { progress(done, 0); });
    }

    [[nodiscard]] std::string python_name() const override { return python_name_; }

private:
    Status find_environment() {
        for (const auto& candidate : tykky_.environments)
            if (quiet::is_directory(context_.root() / candidate)) {
                environment_ = candidate;
                return {};
            }
        return fail_input("the image contains no environment",
                          "it does not contain " + tykky_.environments.front().string(),
                          tykky_.image.string(),
                          "Build it again with `containerize new`. " + inputs_of_tykky());
    }

    Status find_python() {
        auto name = name_of_python(context_);
        if (name) {
            python_name_ = std::move(*name);
            return {};
        }
        if (interrupted()) return fail(std::move(name.error()));
        return fail_input(std::move(name.error().what), std::move(name.error().why),
                          tykky_.directory.string(),
                          "Build it again with `containerize new`. " + inputs_of_tykky());
    }

    [[nodiscard]] std::string inputs_of_tykky() const {
        return "Its inputs are in " + (tykky_.directory / "share/previous_input").string() + ".";
    }

    BuildContext& context_;
    const inputs::TykkyInstallation& tykky_;
    WritableImages images_;
    fs::path environment_; ///< relative to the image's root
    std::string python_name_;
};

} // namespace

std::unique_ptr<EnvironmentBuilder> make_import_builder(BuildContext& context) {
    return std::make_unique<ImportBuilder>(context);
}

} // namespace containerize::environments

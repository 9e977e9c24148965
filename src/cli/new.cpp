#include "build/build.h"
#include "cli/build_arguments.h"
#include "cli/command.h"
#include "cli/help.h"
#include "conda/package_record.h"
#include "core/filesystem.h"
#include "core/printable.h"
#include "util/log.h"
#include "util/progress.h"

#include <cstdio>
#include <memory>

#include <fmt/format.h>

namespace containerize::cli {

namespace {

struct NewArguments : BuildArguments {
    bool dry_run = false, json = false;
};

constexpr const char* new_examples = R"(Examples:
  containerize new --prefix ~/envs/ml env.yml
  containerize new --prefix ~/envs/ml --cuda 12.4 env.yml     # for GPU nodes, built on a node without GPU
  containerize new --prefix ~/envs/ml requirements.txt
  containerize new --prefix ~/envs/ml --extra gpu uv.lock     # also poetry.lock, pylock.toml, pyproject.toml
  containerize new --prefix /scratch/me/ml --python 3.11 requirements.txt
  containerize new --prefix ml --python conda requirements.txt     # needs no Python of the host
  containerize new --prefix ml --post-install fetch-data.sh --environ settings.sh requirements.txt
  containerize new --prefix ml --force requirements.txt      # replace what is there

Sites and users can set defaults in configuration files: `containerize config show` prints them.
Everything is built on node-local storage; only finished files are written to the prefix.
If anything fails, or you press Ctrl-C, the prefix stays as it was.)";

/// The name of a wheel, or the line from which a wheel is built.
std::string file_to_install(const pip::ResolvedPackage& package) {
    return package.url.empty() ? package.requirement() : pip::file_name_in(package.url);
}

nlohmann::json to_json(const pip::ResolvedPackage& package) {
    nlohmann::json object = {
        {"name", package.name}, {"version", package.version}, {"requested", package.requested}};
    for (const auto& [key, value] : {std::pair("url", package.url), std::pair("sha256", package.sha256)})
        if (!value.empty()) object[key] = value;
    if (package.kind == pip::ResolvedPackage::Kind::needs_build) object["build"] = package.requirement();
    if (package.size > 0) object["size"] = package.size;
    return object;
}

// Shows what would be installed. Needs no prefix.
Result<int> show_plan(const NewArguments& arguments, const std::string& command_line) {
    auto options = TRY(options_from(arguments, command_line));
    auto plan = TRY(build::dry_run(options));
    if (plan.pip_lines != 0)
        log::warn(fmt::format("the packages that pip installs ({}) are not listed: {}.",
                              counted(plan.pip_lines, "line"), printable_line(plan.why_not_solved)));
    if (arguments.json) {
        nlohmann::json packages = nlohmann::json::array();
        for (const auto& record : plan.packages)
            packages.push_back(conda::to_json(record));
        for (const auto& one : plan.of_pip)
            packages.push_back(to_json(one));
        fmt::print("{}\n", packages.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
        return 0;
    }
    std::uint64_t bytes = 0;
    for (const auto& record : plan.packages) {
        fmt::print("{:<30} {:<15} {:<25} {}\n", printable_line(record.name), printable_line(record.version),
                   printable_line(record.build), printable_line(record.channel));
        bytes += record.size;
    }
    for (const auto& one : plan.of_pip) {
        fmt::print("{:<30} {:<15} {}\n", printable_line(one.name), printable_line(one.version),
                   printable_line(file_to_install(one)));
        bytes += one.size;
    }
    // pip does not tell the sizes.
    fmt::print("{}{}\n", counted(plan.packages.size() + plan.of_pip.size(), "package"),
               bytes == 0 ? "" : ", " + human_bytes(bytes));
    return 0;
}

Result<inputs::BuildOptions> options_with_prefix(const BuildArguments& arguments,
                                                 const std::string& command_line) {
    auto options = TRY(options_from(arguments, command_line));
    if (options.prefix.empty())
        return fail_input("--prefix is missing", "it sets the installation's directory", {},
                          "Give --prefix DIR.");
    return options;
}

} // namespace

Result<int> show_built(const Result<build::BuildSummary>& built, bool quiet) {
    if (!built) return fail(Error(built.error()));
    if (!quiet)
        fmt::print(
            "{}\n{}\n",
            log::tagged("INFO",
                        fmt::format("Ready: {} ({}, {} image, {}) in {}.", built->prefix.string(),
                                    counted(built->files, "file"), human_bytes(built->image_bytes),
                                    counted(built->commands, "command"), human_seconds(built->seconds))),
            log::tagged("INFO", fmt::format("Next:  export PATH={}:$PATH",
                                            shell_quoted((built->prefix / "bin").string()))));
    return 0;
}

Result<int> run_new(const BuildArguments& arguments, const std::string& command_line) {
    auto options = TRY(options_with_prefix(arguments, command_line));
    return show_built(build::build(options), arguments.quiet);
}

Result<int> run_wrap_install(const BuildArguments& arguments, bool mask, const std::string& command_line) {
    auto with_no_spec = arguments;
    with_no_spec.spec.clear();
    auto options = TRY(options_with_prefix(with_no_spec, command_line));
    return show_built(build::wrap_install(options, arguments.spec, mask), arguments.quiet);
}

Result<int> run_wrap_container(const BuildArguments& arguments, const std::string& command_line) {
    auto options = TRY(options_with_prefix(arguments, command_line));
    return show_built(build::wrap_container(options), arguments.quiet);
}

void add_new(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand(
        "new",
        "Create an installation from an environment.yml, a requirements file, a lock file or a project");
    const auto arguments = std::make_shared<NewArguments>();
    command->footer(new_examples);
    add_spec(*command, *arguments)->required();
    add_prefix_options(*command, *arguments);
    auto* dry_run = command->add_flag("--dry-run", arguments->dry_run, "Show what would be installed");
    command->add_flag("--json", arguments->json, json_description)->needs(dry_run);
    add_content_options(*command, *arguments);
    command->option_defaults()->group("Packages");
    add_platform_option(
        *command, *arguments,
        "Platform for which --dry-run chooses packages. Only this machine's can be installed");
    command->option_defaults()->group("Python");
    add_configured(*command, config::Key::python, arguments->python)->type_name("PYTHON");
    command->add_flag("--bundle-python", arguments->bundle_python,
                      "Copy the interpreter and its standard library into the image");
    command->add_flag("--system-site-packages", arguments->system_site_packages,
                      "Let programs see the packages of the interpreter and of the user");
    add_root_options(*command, *arguments);
    add_engine_option(*command, *arguments);
    add_stage_option(*command, *arguments);
    add_profile_options(*command, *arguments);
    add_layout_option(*command, *arguments);
    add_work_options(*command, *arguments);
    add_timings_option(*command, *arguments);
    on(*command, call, [&call, arguments] {
        return with_timings(*arguments, [&] {
            return arguments->dry_run ? show_plan(*arguments, call.line) : run_new(*arguments, call.line);
        });
    });
}

void add_wrap_install(CLI::App& app, Call& call) {
    auto* command =
        app.add_subcommand("wrap-install", "Put software that is installed in a directory into an image");
    const auto arguments = std::make_shared<BuildArguments>();
    const auto mask = std::make_shared<bool>(false);
    command->add_option("SRC", arguments->spec, "Directory of the software")->required()->type_name("DIR");
    add_prefix_options(*command, *arguments);
    command->add_flag("--mask", *mask,
                      "Programs that use SRC see the image there, not the directory on disk");
    add_hook_options(*command, *arguments);
    add_root_options(*command, *arguments);
    add_engine_option(*command, *arguments);
    add_stage_option(*command, *arguments);
    add_profile_options(*command, *arguments);
    add_work_options(*command, *arguments);
    command->footer(
        "Example:\n  containerize wrap-install --prefix ~/soft/tool -w bin,libexec /appl/tool-1.2\n\n"
        "Wrapper paths are relative to SRC, or absolute paths below it. Links that point outside SRC are "
        "reported.");
    on(*command, call, [&call, arguments, mask] { return run_wrap_install(*arguments, *mask, call.line); });
}

void add_wrap_container(CLI::App& app, Call& call) {
    auto* command =
        app.add_subcommand("wrap-container", "Create wrappers for the programs of a container image");
    const auto arguments = std::make_shared<BuildArguments>();
    command
        ->add_option("IMAGE", arguments->base,
                     "The image: docker://NAME, oci:DIR, a .sif or .sqfs file, or a directory")
        ->required()
        ->type_name("FILE");
    add_prefix_options(*command, *arguments);
    add_hook_options(*command, *arguments);
    add_container_options(*command, *arguments);
    add_profile_options(*command, *arguments);
    add_work_options(*command, *arguments);
    command->footer(
        "Example:\n  containerize wrap-container --prefix ~/soft/tool -w /opt/tool/bin tool.sif\n\n"
        "Wrapper paths are absolute paths in the image, of programs or of directories that contain "
        "programs.");
    on(*command, call, [&call, arguments] { return run_wrap_container(*arguments, call.line); });
}

} // namespace containerize::cli

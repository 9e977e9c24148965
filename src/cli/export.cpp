// export: the packages of an installation in the formats of other tools.
#include "build/export.h"

#include "cli/command.h"
#include "cli/help.h"
#include "cli/output_file.h"
#include "manifest/manifest.h"

#include <memory>

namespace containerize::cli {

namespace {

struct ExportArguments {
    std::string directory, format, output;
};

constexpr const char* export_examples = R"(Examples:
  containerize export ~/envs/ml --format environment.yml
  containerize export ~/envs/ml -o conda-lock.yml
  containerize export ~/envs/web -o requirements.txt)";

Result<int> run_export(const ExportArguments& arguments) {
    const auto prefix = TRY(manifest::resolve_installation(arguments.directory));
    const auto record = TRY(build::record_of_packages(prefix));
    TRY(check_output(arguments.output, record));
    const auto list =
        TRY(build::export_packages(record, {.name = arguments.format, .output = arguments.output}));
    TRY(write_output(arguments.output, record, list));
    return 0;
}

} // namespace

void add_export(CLI::App& app, Call& call) {
    auto* command =
        app.add_subcommand("export", "List the exact packages of an installation for other tools");
    const auto arguments = std::make_shared<ExportArguments>();
    add_installation(*command, arguments->directory);
    command
        ->add_option(
            "--format", arguments->format,
            "Format of the list. `pylock` and `requirements.txt` are for installations of pip packages, "
            "the others for those with conda packages")
        ->check(offer("environment.yml,requirements.txt,pylock,explicit,conda-lock,pixi,own"))
        ->default_str("told by the name of -o, else own or pylock");
    add_output_option(*command, arguments->output);
    command->footer(export_examples);
    on(*command, call, [arguments] { return run_export(*arguments); });
}

} // namespace containerize::cli

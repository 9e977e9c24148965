#include "build/build.h"
#include "cli/build_arguments.h"
#include "cli/command.h"

#include <memory>

namespace containerize::cli {

namespace {

struct ImportArguments : BuildArguments {
    std::string directory;
};

constexpr const char* import_tykky_examples = R"(Example:
  containerize import-tykky /projappl/me/env ~/envs/env

Nothing is rebuilt: the image is copied, and DIR is not changed. The programs then see the host's root filesystem,
not tykky's container. If they use the container's Python (--slim), the container becomes the base image.
Installations of conda-containerize, pip-containerize and wrap-install can be imported.)";

} // namespace

void add_import_tykky(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("import-tykky", "Create an installation from a tykky installation");
    const auto arguments = std::make_shared<ImportArguments>();
    command->add_option("DIR", arguments->directory, "The tykky installation")->required();
    command
        ->add_option("NEWPREFIX", arguments->prefix,
                     "Directory of the new installation. It must be empty, or must not exist")
        ->required()
        ->type_name("DIR");
    add_force_option(*command, *arguments);
    add_profile_options(*command, *arguments);
    add_work_options(*command, *arguments);
    command->footer(import_tykky_examples);
    on(*command, call, [&call, arguments]() -> Result<int> {
        auto options = TRY(options_from(*arguments, call.line));
        return show_built(build::import_tykky(options, arguments->directory), arguments->quiet);
    });
}

} // namespace containerize::cli

#include "cli/tree.h"

#include "cli/command.h"
#include "cli/help.h"
#include "cli/tykky.h"
#include "cli/version_text.h"

namespace containerize::cli {

namespace {

struct Entry {
    const char* group;
    void (*add)(CLI::App& app, Call& call);
};

constexpr auto creating = "Create installations";
constexpr auto changing = "Change installations";
constexpr auto using_them = "Use installations";
constexpr auto examining = "Examine";
constexpr auto in_jobs = "In batch jobs";
constexpr auto files = "Settings and stored files";

constexpr auto commands = std::to_array<Entry>({
    {creating, add_new},          {creating, add_lock},
    {creating, add_wrap_install}, {creating, add_wrap_container},
    {creating, add_import_tykky}, {changing, add_update},
    {changing, add_dev},          {changing, add_log},
    {changing, add_rollback},     {changing, add_squash},
    {changing, add_upgrade},      {using_them, add_run},
    {using_them, add_exec},       {using_them, add_shell},
    {using_them, add_activate},   {using_them, add_kernel},
    {using_them, add_profile},    {in_jobs, add_launch},
    {in_jobs, add_job},           {in_jobs, add_stage},
    {examining, add_inspect},     {examining, add_export},
    {examining, add_stats},       {examining, add_check},
    {examining, add_doctor},      {files, add_config},
    {files, add_cache},           {files, add_base},
});

constexpr const char* footer = R"(A first installation:
  containerize new --prefix ~/envs/demo requirements.txt
  export PATH=~/envs/demo/bin:$PATH
  python -c 'import numpy; print(numpy.__version__)'

`containerize COMMAND --help` explains each command.)";

void add_commands(CLI::App& app, Call& call) {
    app.set_version_flag("--version", version_text,
                         "Show the versions of containerize and its libraries, and exit");
    for (const auto& [group, add] : commands) {
        add(app, call);
        for (auto* command : app.get_subcommands({}))
            if (command->get_group() == "Subcommands") command->group(group);
    }
    app.footer(footer); // last, because commands would inherit it
}

} // namespace

std::unique_ptr<CLI::App> make_tree(std::string_view name, Call& call) {
    if (is_name_of_tykky(name)) return make_tykky_tree(name, call);
    auto app = std::make_unique<CLI::App>(
        "Turns a Python environment into one image file, with wrappers that run its programs as if it were a "
        "directory",
        std::string(name));
    app->set_help_flag("-h,--help", "Show this help and exit");
    app->formatter(std::make_shared<Help>());
    app->require_subcommand(0, 1);
    app->option_defaults()->configurable(false);
    if (name == tykky_function)
        add_activate(*app, call);
    else
        add_commands(*app, call);
    return app;
}

void on(CLI::App& command, Call& call, Action action) {
    command.callback([&call, action = std::move(action)] { call.action = action; });
}

void add_installation(CLI::App& command, std::string& directory, const std::string& description) {
    command.add_option("DIR", directory, description)->required();
}

CLI::Option* take_program(CLI::App& command, const std::string& description) {
    return command.add_option("COMMAND", description)->type_size(0)->expected(0);
}

bool takes_program(const CLI::App& command) {
    const auto* program = command.get_option_no_throw("COMMAND");
    return program != nullptr && program->get_expected_max() == 0;
}

} // namespace containerize::cli

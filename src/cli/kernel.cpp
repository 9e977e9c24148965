#include "cli/command.h"
#include "cli/installation.h"
#include "core/filesystem.h"
#include "manifest/manifest.h"
#include "util/process.h"

#include <memory>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::cli {

namespace {

struct KernelArguments {
    std::string directory, name;
};

/// The directory in which Jupyter looks for this user's kernels.
Result<fs::path> kernels() {
    const auto variables = current_environment();
    if (const fs::path data = variable(variables, "JUPYTER_DATA_DIR"); !data.empty()) return data / "kernels";
    const fs::path home = variable(variables, "HOME");
    if (home.empty())
        return fail_input("there is no home directory for the kernel", "HOME is not set", {},
                          "Set HOME, or JUPYTER_DATA_DIR.");
    return home / ".local/share/jupyter/kernels";
}

/// Whether Jupyter accepts it as the name of a kernel's directory.
bool is_kernel_name(std::string_view name) {
    constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    return !name.empty() && name[0] != '.' && name.find_first_not_of(allowed) == name.npos;
}

Status check_ipykernel(const fs::path& prefix) {
    auto asked = TRY(capture({.argv = {(prefix / "bin/python").string(), "-c", "import ipykernel"}}));
    if (asked.ok()) return {};
    return fail_input("the installation does not contain ipykernel", {}, prefix.string(),
                      "Install it: containerize update " + shell_quoted(prefix.string()) +
                          " -- pip install ipykernel");
}

Result<int> run_kernel(const KernelArguments& arguments) {
    auto prefix = TRY(find_installation(arguments.directory));
    const auto name = arguments.name.empty() ? prefix.filename().string() : arguments.name;
    if (!is_kernel_name(name))
        return fail_input("invalid kernel name", {}, name,
                          "Give a name of letters, digits, '-', '_' and '.' with --name.");
    auto place = TRY(kernels());
    TRY(check_ipykernel(prefix));
    const auto directory = place / name;
    TRY(make_directories(directory));
    const nlohmann::json kernel = {
        {"argv", {(prefix / "bin/python").string(), "-m", "ipykernel_launcher", "-f", "{connection_file}"}},
        {"display_name", name},
        {"language", "python"},
        {"metadata", {{"debugger", true}}}};
    const auto file = directory / "kernel.json";
    const auto text = kernel.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    TRY(write_file(file, text + "\n"));
    fmt::print("{}\n", file.string());
    return 0;
}

} // namespace

void add_kernel(CLI::App& app, Call& call) {
    auto* command = app.add_subcommand("kernel", "Add an installation to your Jupyter as a kernel");
    const auto arguments = std::make_shared<KernelArguments>();
    add_installation(*command, arguments->directory, "The installation. It must contain ipykernel");
    command->add_option("--name", arguments->name, "Name of the kernel")
        ->type_name("NAME")
        ->default_str("the name of the installation's directory");
    on(*command, call, [arguments] { return run_kernel(*arguments); });
}

} // namespace containerize::cli

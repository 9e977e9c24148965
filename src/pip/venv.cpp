#include "pip/venv.h"

#include "pip/pip_configuration.h"

#include <string>
#include <vector>

namespace containerize::pip {

namespace {

Command venv_command(const VenvRequest& request, std::vector<std::string> argv) {
    return {.argv = std::move(argv),
            .environment = request.environment,
            .working_directory = request.prefix,
            .in_child = request.in_child};
}

Status expect_success(const Command& command, const std::string& what) {
    auto outcome = TRY(run(command));
    if (outcome.ok()) return {};
    return fail({.what = what,
                 .why = "exit code " + std::to_string(outcome.exit_code) + "\n" + tail(outcome.output, 12)});
}

/// For a Python without ensurepip.
Status install_pip(const VenvRequest& request) {
    const std::string python = (request.prefix / "bin/python").string();
    const std::string failed = "cannot install pip";
    if (!request.interpreter.has_pip)
        return expect_success(
            venv_command(request, {request.uv->string(), "pip", "install", "--python", python, "pip"}),
            failed);
    auto command = venv_command(request, {request.interpreter.executable.string(), "-m", "pip"});
    command.environment = TRY(configure(command)).environment;
    command.argv.insert(command.argv.end(), {"--python", python, "install", "--no-compile", "pip"});
    return expect_success(command, failed);
}

} // namespace

Status check_venv(const Interpreter& interpreter, const std::optional<std::filesystem::path>& uv) {
    if (!interpreter.has_venv)
        return fail_input("this Python has no venv module", {}, interpreter.executable.string(),
                          "Install it (Debian: python3-venv), or choose another interpreter with --python.");
    if (!interpreter.has_ensurepip && !interpreter.has_pip && !uv)
        return fail_input(
            "this Python cannot create an environment with pip",
            "it has neither ensurepip nor pip, and uv is not on PATH", interpreter.executable.string(),
            "Install them (Debian: python3-venv), or choose another interpreter with --python.");
    return {};
}

Status make_venv(const VenvRequest& request) {
    const auto& interpreter = request.interpreter;
    std::vector<std::string> argv = {interpreter.executable.string(), "-m", "venv"};
    if (request.system_site_packages) argv.emplace_back("--system-site-packages");
    if (!interpreter.has_ensurepip || !request.with_pip) argv.emplace_back("--without-pip");
    argv.push_back(request.prefix.string());
    TRY(expect_success(venv_command(request, std::move(argv)), "cannot create the environment"));
    return interpreter.has_ensurepip || !request.with_pip ? Status() : install_pip(request);
}

} // namespace containerize::pip

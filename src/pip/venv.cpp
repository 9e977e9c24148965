#include "pip/venv.h"

#include <string>
#include <vector>

namespace containerize::pip {

namespace {

Status expect_success(const VenvRequest& request, std::vector<std::string> argv, const std::string& what) {
    auto outcome = TRY(run({.argv = std::move(argv),
                            .environment = request.environment,
                            .working_directory = request.prefix,
                            .in_child = request.in_child}));
    if (outcome.ok()) return {};
    return fail({.what = what,
                 .why = "exit code " + std::to_string(outcome.exit_code) + "\n" + tail(outcome.output, 12)});
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
    const std::string program = interpreter.executable.string();
    const std::string prefix = request.prefix.string();
    std::vector<std::string> argv = {program, "-m", "venv"};
    if (request.system_site_packages) argv.emplace_back("--system-site-packages");
    if (!interpreter.has_ensurepip) argv.emplace_back("--without-pip");
    argv.push_back(prefix);
    TRY(expect_success(request, argv, "cannot create the environment"));
    if (interpreter.has_ensurepip) return {};
    const std::string python = (request.prefix / "bin/python").string();
    if (interpreter.has_pip)
        return expect_success(request,
                              {program, "-m", "pip", "--python", python, "install", "--no-compile", "pip"},
                              "cannot install pip");
    return expect_success(request, {request.uv->string(), "pip", "install", "--python", python, "pip"},
                          "cannot install pip");
}

} // namespace containerize::pip

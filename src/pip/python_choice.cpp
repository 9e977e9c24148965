#include "pip/python_choice.h"

#include "pip/venv.h"

#include <cstdio>
#include <utility>

namespace containerize::pip {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view conda = "conda";

Status check_version(const std::string& version, const std::string& wanted) {
    if (!is_version(version))
        return fail_input("invalid version of Python: '" + version + "'", {}, wanted,
                          "Give a version such as 3.12.");
    int major = 0, minor = 0;
    const int given = std::sscanf(version.c_str(), "%d.%d", &major, &minor);
    if (major > 3 || (major == 3 && (given == 1 || minor >= oldest_minor))) return {};
    return fail_input("Python " + version + " is too old", {}, {},
                      "Choose version 3.8 or newer with --python.");
}

Result<Interpreter> find_usable(const std::string& wanted, const std::optional<fs::path>& uv,
                                const Environment& environment) {
    auto interpreter = TRY(choose_interpreter(wanted, environment));
    TRY(check_venv(interpreter, uv));
    return interpreter;
}

} // namespace

bool is_of_conda(const std::string& wanted) {
    return wanted == conda || wanted.starts_with("conda:");
}

Status check_default_python(const std::string& wanted) {
    if (wanted.starts_with('/') || wanted == conda) return {};
    return check_version(is_of_conda(wanted) ? wanted.substr(conda.size() + 1) : wanted, {});
}

Result<PythonChoice> choose_python(const std::string& wanted, const std::optional<fs::path>& uv,
                                   const Environment& environment) {
    const std::string requested = "requested";
    if (is_of_conda(wanted)) {
        const auto version = wanted == conda ? "" : wanted.substr(conda.size() + 1);
        if (wanted != conda) TRY(check_version(version, wanted));
        return PythonChoice{.version = version, .reason = requested};
    }
    const bool is_path = !wanted.empty() && !is_version(wanted);
    if (!is_path && !wanted.empty()) TRY(check_version(wanted, {}));
    auto found = find_usable(wanted, uv, environment);
    if (found)
        return PythonChoice{.interpreter = std::move(*found),
                            .reason = is_path ? requested : name_on_path(wanted) + " on PATH"};
    if (is_path) return fail(std::move(found.error()));
    const auto& error = found.error();
    return PythonChoice{.version = wanted,
                        .reason = (error.where.empty() ? "" : error.where + ": ") + what_and_why(error)};
}

std::string warning_about(const Interpreter& interpreter) {
    std::error_code ignored;
    // RHEL's own Python need not be the one that "python3" names.
    for (const char* own : {"/usr/bin/python3", "/usr/libexec/platform-python"})
        if (fs::equivalent(interpreter.executable, own, ignored)) return {};
    return "Each node that runs this environment needs " + interpreter.executable.string() +
           ", which is not the distribution's python3. With --bundle-python or --python conda, the "
           "environment "
           "needs no Python of the host.";
}

} // namespace containerize::pip

#include "pip/interpreter.h"

#include "manifest/manifest.h"

#include <cctype>
#include <sstream>

#include <unistd.h>

namespace containerize::pip {

namespace {

namespace fs = std::filesystem;

// Asks the interpreter itself: a file on PATH may be a shim, a link or a venv's. One answer per line.
constexpr const char* questions = R"py(
import importlib.util, os, sys, sysconfig
has = lambda name: int(importlib.util.find_spec(name) is not None)
print(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))
print(sys.base_prefix)
print(sysconfig.get_path("stdlib"))
print("%d.%d.%d" % sys.version_info[:3])
print(sys.version_info[0])
print(sys.version_info[1])
print(has("venv"))
print(has("ensurepip"))
print(has("pip"))
)py";

/// Runs the interpreter at `path`, and checks that it is the one wanted.
Result<Interpreter> examine(const std::string& path, const std::string& wanted,
                            const Environment& environment, const std::function<int()>& in_child) {
    auto answer = TRY(capture({.argv = {path, "-I", "-c", questions},
                               .environment = environment,
                               .working_directory = "/",
                               .in_child = in_child}));
    Interpreter interpreter;
    std::istringstream lines(answer.output);
    std::string executable, base, library;
    std::getline(lines, executable);
    std::getline(lines, base);
    std::getline(lines, library);
    lines >> interpreter.version >> interpreter.major >> interpreter.minor >> interpreter.has_venv >>
        interpreter.has_ensurepip >> interpreter.has_pip;
    if (!answer.ok() || !lines || executable.empty())
        return fail_input("this is not a working Python 3", "it does not report its version", path,
                          "Choose another interpreter with --python.");
    interpreter.executable = executable;
    interpreter.base_prefix = base;
    interpreter.standard_library = library;
    if (interpreter.major != 3 || interpreter.minor < oldest_minor)
        return fail_input("this Python is too old", "its version is " + interpreter.version, path,
                          "Choose an interpreter of version 3.8 or newer with --python.");
    if (!wanted.empty() && is_version(wanted) && interpreter.version != wanted &&
        !interpreter.version.starts_with(wanted + "."))
        return fail_input("this Python is " + interpreter.version + ", not " + wanted, {}, path);
    return interpreter;
}

} // namespace

bool is_version(const std::string& text) {
    const auto is_digit = [](char one) { return std::isdigit(static_cast<unsigned char>(one)) != 0; };
    return !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos &&
           is_digit(text.front()) && is_digit(text.back()) && text.find("..") == std::string::npos;
}

std::string name_on_path(const std::string& wanted) {
    return "python" + (wanted.empty() ? "3" : wanted);
}

Result<fs::path> find_interpreter(const std::string& wanted, const Environment& environment) {
    if (!wanted.empty() && !is_version(wanted)) {
        std::error_code failed;
        fs::path path = fs::absolute(wanted, failed);
        if (access(path.c_str(), X_OK) != 0 || fs::is_directory(path, failed))
            return fail_input("this is not a Python that can be run", {}, wanted,
                              "Give --python the path of an interpreter, or a version such as 3.11.");
        if (const auto owner = manifest::installation_of_program(path); !owner.empty())
            return fail_input("this Python belongs to the installation " + owner.string(), {}, wanted,
                              "Choose an interpreter outside of installations with --python.");
        return path;
    }
    const std::string name = name_on_path(wanted);
    const auto found = find_program(name, search_path(environment), [](const fs::path& one) {
        return manifest::installation_of_program(one).empty();
    });
    if (found) return *found;
    return fail_input(name + " is not on PATH", {}, {},
                      "Give --python the path of an interpreter, or load a module that has one.");
}

Result<Interpreter> choose_interpreter(const std::string& wanted, const Environment& environment) {
    auto path = TRY(find_interpreter(wanted, environment));
    return examine(path.string(), wanted, environment, {});
}

Result<Interpreter> choose_interpreter_inside(const std::string& wanted, const Environment& environment,
                                              const std::function<int()>& in_child) {
    if (wanted.find('/') != std::string::npos) return examine(wanted, wanted, environment, in_child);
    const std::string name = name_on_path(wanted);
    auto found = TRY(capture({.argv = {"/bin/sh", "-c", "command -v " + name},
                              .environment = environment,
                              .working_directory = "/",
                              .in_child = in_child}));
    const std::string path = found.output.substr(0, found.output.find('\n'));
    if (!found.ok() || !path.starts_with('/'))
        return fail_input(
            "the base has no " + name, {}, {},
            "Use a base with an interpreter, such as docker://python:3.12-slim, or take conda's "
            "with --python conda.");
    return examine(path, wanted, environment, in_child);
}

} // namespace containerize::pip

#include "launch/launch_rules.h"

#include "core/ownership.h"
#include "core/text.h"
#include "core/variables.h"
#include "launch/read_variables.h"
#include "launch/root_key.h"

#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <unistd.h>

namespace containerize::launch {

namespace {

/// Searched for programs if PATH is not set.
constexpr const char* default_path = "/usr/bin:/bin";

// Whether a venv of the user's, on top of the installation, is active: PATH and VIRTUAL_ENV then belong to
// it.
bool other_venv_is_active(const Variables& variables, const std::string& prefix) {
    const char* active = variables.get("VIRTUAL_ENV");
    const char* ours = variables.get("CONTAINERIZE_PREFIX");
    return active != nullptr && active[0] != '\0' && prefix != active &&
           (ours == nullptr || std::string_view(ours) != active);
}

bool is_to_be_activated(const Call& call, const Variables& variables) {
    // tykky's users set these variables where its own guess is wrong.
    if (variables.get("CW_NO_CONDA_ACTIVATE") != nullptr) return false;
    const bool debugging = call.name == "_debug_exec" || call.name == "_debug_shell";
    if (debugging || variables.get("CW_FORCE_CONDA_ACTIVATE") != nullptr) return true;
    return call.through_prefix && !other_venv_is_active(variables, call.prefix);
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    for (const auto one : words)
        if (word == one) return true;
    return false;
}

/// Whether any argument is one of `options`, or one of them followed by '='.
bool has_option(char** argv, std::initializer_list<std::string_view> options) {
    for (; *argv != nullptr; ++argv)
        if (const std::string_view word = *argv; is_one_of(word.substr(0, word.find('=')), options))
            return true;
    return false;
}

bool would_install_by_pip(char** argv) {
    return *argv != nullptr && is_one_of(*argv, {"install", "uninstall"}) &&
           !has_option(argv, {"-t", "--target", "--user", "--prefix", "--root", "--python", "--dry-run", "-h",
                              "--help"});
}

bool would_install_by_conda(char** argv) {
    return *argv != nullptr && is_one_of(*argv, {"install", "remove", "uninstall", "update", "upgrade"}) &&
           !has_option(argv, {"-n", "--name", "-p", "--prefix", "-d", "--dry-run", "-h", "--help",
                              "--download-only"});
}

} // namespace

bool is_file(const char* path, const struct stat& self) {
    struct stat info {};
    return path != nullptr && stat(path, &info) == 0 && info.st_dev == self.st_dev &&
           info.st_ino == self.st_ino;
}

void choose_target(Call& call, const char* executed, const char* first_argument) {
    // If the wrapper is the interpreter of a script, `executed` is the script, and argv[0] names the wrapper.
    if (is_file(executed, call.self))
        call.target = executed;
    else if (first_argument != nullptr && std::strchr(first_argument, '/') != nullptr &&
             is_file(first_argument, call.self))
        call.target = first_argument;
    else
        call.target = call.program;
    call.name = call.target.substr(call.target.rfind('/') + 1);
    // A link elsewhere, such as a venv's bin/python, lies in a directory that is not below the prefix.
    std::array<char, PATH_MAX> real;
    const std::string directory = parent_of(call.target);
    call.through_prefix =
        call.target == call.program || (realpath(directory.c_str(), real.data()) != nullptr &&
                                        std::string_view(real.data()).starts_with(call.prefix + "/"));
}

bool would_change_installation(std::string_view name, char** argv) {
    if (name.starts_with("pip") && name.find_first_not_of("0123456789.", 3) == name.npos)
        return would_install_by_pip(argv + 1);
    if (name.starts_with("python") && argv[1] != nullptr && argv[2] != nullptr &&
        std::string_view(argv[1]) == "-m" && std::string_view(argv[2]) == "pip")
        return would_install_by_pip(argv + 3);
    return is_one_of(name, {"conda", "mamba", "micromamba"}) && would_install_by_conda(argv + 1);
}

std::vector<std::string> prepare_environment(Variables& variables, const Call& call, const LaunchPlan& plan) {
    variables.apply(plan.root);
    // A venv on top stays in front of the base's own directories.
    if (!plan.root.empty() && other_venv_is_active(variables, call.prefix))
        variables.apply(
            {{EnvironmentChange::Kind::prepend, "PATH", std::string(variables.get("VIRTUAL_ENV")) + "/bin"}});
    const bool activated = is_to_be_activated(call, variables);
    if (activated) {
        // Without any PATH, prepending our directory would make it the whole PATH, and lose the default.
        if (variables.get("PATH") == nullptr) variables.set("PATH", default_path);
        variables.apply(plan.activation);
    }
    variables.apply(plan.environment);
    variables.set("CONTAINERIZE_PREFIX", call.prefix);
    return activated ? plan.scripts : std::vector<std::string>();
}

std::string code_to_source(const std::vector<std::string>& scripts) {
    std::string text = "__containerize_call=(\"$@\"); set --; ";
    for (const auto& script : scripts)
        text += ". " + shell_quoted(script) + "; ";
    text +=
        "exec -a \"${__containerize_call[0]}\" \"${__containerize_call[1]}\" \"${__containerize_call[@]:2}\"";
    return text;
}

std::string find_command(std::string_view command, const Variables& variables) {
    const char* path = variables.get("PATH");
    std::string_view rest = path == nullptr ? default_path : path;
    for (bool more = true; more;) {
        const auto colon = rest.find(':');
        std::string candidate(rest.substr(0, colon));
        more = colon != std::string_view::npos;
        if (more) rest.remove_prefix(colon + 1);
        if (!candidate.empty()) candidate += '/';
        candidate += command;
        struct stat info {};
        if (stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
            access(candidate.c_str(), X_OK) == 0)
            return candidate;
    }
    return {};
}

std::vector<std::string> variables_of_session() {
    std::vector<std::string> variables;
    const auto take = [&](Variable one) {
        if (const char* value = value_of(one)) variables.push_back(std::string(one.name()) + "=" + value);
    };
    for (const auto one :
         VariableList{"CONTAINERIZE_SESSION_IDLE", "CONTAINERIZE_ENGINE", "CONTAINERIZE_STAGE", "TMPDIR",
                      prefetch_variable, record_variable, delay_variable})
        take(one);
    for (const auto& variable : root_variables)
        take(variable.name);
    for (const auto one : user_variables)
        take(one);
    return variables;
}

} // namespace containerize::launch

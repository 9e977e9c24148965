#include "install/inputs.h"

#include "install/prefix.h"
#include "install/wrappers.h"
#include "pip/venv.h"
#include "runtime/manifest.h"
#include "spec/spec.h"
#include "util/filesystem.h"

#include <cstdlib>

#include <sys/stat.h>
#include <unistd.h>

namespace containerize::install {

namespace {

Result<std::optional<std::uint32_t>> source_date_epoch() {
    const char* text = std::getenv("SOURCE_DATE_EPOCH");
    if (text == nullptr || *text == '\0') return std::nullopt;
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (*end != '\0' || *text == '-' || value > 0xFFFFFFFFULL)
        return fail_input("SOURCE_DATE_EPOCH is not a number of seconds", {}, text,
                          "Unset it, or set it to seconds since 1970.");
    return static_cast<std::uint32_t>(value);
}

/// Byte-code must be the same whoever builds, and lie beside its source; packages must come from the
/// environment alone.
Environment clean_environment() {
    Environment environment = current_environment();
    for (const char* name :
         {"PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONOPTIMIZE", "PYTHONPYCACHEPREFIX",
          "PYTHONINSPECT", "PYTHONWARNINGS", "PYTHONDEBUG", "PYTHONVERBOSE", "PYTHONEXECUTABLE",
          "PYTHONPLATLIBDIR", "VIRTUAL_ENV", "CONDA_PREFIX", "__PYVENV_LAUNCHER__", "CONTAINERIZE_PREFIX",
          "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON"})
        environment.erase(name);
    environment["PYTHONNOUSERSITE"] = "1";
    environment["PYTHONHASHSEED"] = "0";
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1";
    environment["PIP_USER"] = "0"; // a site's pip.conf may say 1, which no venv can obey
    return environment;
}

Status check_script(const fs::path& file, const char* option) {
    struct stat info {};
    if (stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(file.c_str(), R_OK) == 0) return {};
    return fail_input(std::string("cannot read the script for ") + option, {}, file.string(),
                      "Give a file that you may read.");
}

Status collect_files(const BuildOptions& options, Inputs& inputs) {
    inputs.files = inputs.requirements.files;
    for (const auto& [file, option] : {std::pair{&options.pre_install, "--pre-install"},
                                       std::pair{&options.post_install, "--post-install"},
                                       std::pair{&options.environ_script, "--environ"}}) {
        if (!*file) continue;
        if (auto good = check_script(**file, option); !good) return good;
        inputs.files.push_back(**file);
    }
    for (const auto& file : inputs.files)
        if (auto outside = check_outside(file, inputs.prefix); !outside) return outside;
    if (options.log_copy) return check_outside(*options.log_copy, inputs.prefix);
    return {};
}

Status check_staging(const fs::path& parent, const fs::path& prefix) {
    if (parent.empty()) return {};
    auto resolved = resolve(parent);
    if (!resolved) return fail(std::move(resolved.error()));
    const auto relative = resolved->lexically_relative(prefix);
    if (relative.empty() || *relative.begin() == "..") return {};
    return fail_input("the directory for building lies in the prefix", {}, resolved->string(),
                      "Give --tmpdir a directory elsewhere, on a disk of this node.");
}

Status choose_programs(const BuildOptions& options, Inputs& inputs) {
    const auto entry = inputs.environment.find("PATH");
    // A wrapper of an installation would enter that installation's session, which does not see the build.
    inputs.uv =
        find_program("uv", entry == inputs.environment.end() ? "/usr/bin:/bin" : entry->second,
                     [](const fs::path& one) { return runtime::installation_of_program(one).empty(); });
    if (options.installer == pip::Installer::uv && !inputs.uv)
        return fail_input("there is no uv on PATH", {}, {}, "Install uv, or use --installer pip.");
    auto interpreter = pip::choose_interpreter(options.python, inputs.environment);
    if (!interpreter) return fail(std::move(interpreter.error()));
    inputs.interpreter = std::move(*interpreter);
    return pip::check_venv(inputs.interpreter, inputs.uv);
}

} // namespace

Result<Inputs> check_inputs(const BuildOptions& options) {
    Inputs inputs;
    auto prefix = check_prefix(options.prefix, options.force);
    if (!prefix) return fail(std::move(prefix.error()));
    inputs.prefix = std::move(*prefix);
    if (auto kind = spec::recognise_supported(options.spec); !kind) return fail(std::move(kind.error()));
    auto file = resolve(options.spec);
    if (!file) return fail(std::move(file.error()));
    inputs.spec = std::move(*file);

    std::error_code failed;
    inputs.working_directory = fs::current_path(failed);
    if (failed)
        return fail_input("the working directory does not exist any more", failed.message(), {},
                          "Change to another directory.");
    auto requirements = spec::read_requirements(inputs.spec, inputs.working_directory);
    if (!requirements) return fail(std::move(requirements.error()));
    inputs.requirements = std::move(*requirements);
    if (auto good = collect_files(options, inputs); !good) return fail(std::move(good.error()));

    auto paths = check_wrapper_paths(options.wrapper_paths, inputs.prefix);
    if (!paths) return fail(std::move(paths.error()));
    inputs.wrapper_paths = std::move(*paths);
    auto epoch = source_date_epoch();
    if (!epoch) return fail(std::move(epoch.error()));
    inputs.source_date_epoch = *epoch;
    if (auto good = check_staging(options.staging_parent, inputs.prefix); !good)
        return fail(std::move(good.error()));

    inputs.environment = clean_environment();
    if (auto chosen = choose_programs(options, inputs); !chosen) return fail(std::move(chosen.error()));
    return inputs;
}

} // namespace containerize::install

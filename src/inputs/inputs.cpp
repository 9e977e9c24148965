#include "inputs/inputs.h"

#include "conda/virtual_packages.h"
#include "core/filesystem.h"
#include "core/printable.h"
#include "core/text.h"
#include "inputs/secrets.h"
#include "manifest/manifest.h"
#include "prefix/prefix.h"
#include "prefix/wrappers.h"
#include "spec/spec.h"

#include <utility>
#include <variant>

#include <sys/stat.h>
#include <unistd.h>

namespace containerize::inputs {

namespace {

Result<std::optional<std::uint32_t>> source_date_epoch() {
    const auto text = variable("SOURCE_DATE_EPOCH");
    if (text.empty()) return std::nullopt;
    if (const auto seconds = to_number<std::uint32_t>(text)) return seconds;
    return fail_input("invalid SOURCE_DATE_EPOCH", {}, text, "Unset it, or set it to seconds since 1970.");
}

/// Removes variables that would make byte-code depend on the user or place it elsewhere, let Python see
/// packages outside the environment, make pip or uv install elsewhere or nothing, or keep uv from verifying
/// checksums and recording where packages came from.
Environment clean_environment() {
    Environment environment = current_environment();
    for (const char* name : {"PYTHONHOME",           "PYTHONPATH",          "PYTHONSTARTUP",
                             "PYTHONOPTIMIZE",       "PYTHONPYCACHEPREFIX", "PYTHONINSPECT",
                             "PYTHONWARNINGS",       "PYTHONDEBUG",         "PYTHONVERBOSE",
                             "PYTHONEXECUTABLE",     "PYTHONPLATLIBDIR",    "VIRTUAL_ENV",
                             "CONDA_PREFIX",         "__PYVENV_LAUNCHER__", "CONTAINERIZE_PREFIX",
                             "PIP_TARGET",           "PIP_PREFIX",          "PIP_ROOT",
                             "PIP_PYTHON",           "PIP_DRY_RUN",         "UV_PYTHON",
                             "UV_SYSTEM_PYTHON",     "UV_PROJECT",          "UV_WORKING_DIR",
                             "UV_WORKING_DIRECTORY", "UV_NO_VERIFY_HASHES", "UV_NO_INSTALLER_METADATA",
                             "PIP_ONLY_DEPS"})
        environment.erase(name);
    environment["PYTHONNOUSERSITE"] = "1";
    environment["PYTHONHASHSEED"] = "0";
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1";
    // A site's pip.conf may set `user`, which fails in a venv, or `require-virtualenv`, which fails
    // elsewhere.
    environment["PIP_USER"] = "0";
    environment["PIP_REQUIRE_VIRTUALENV"] = "0";
    return environment;
}

Status check_script(const fs::path& file, const char* option) {
    struct stat info {};
    if (stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(file.c_str(), R_OK) == 0) return {};
    return fail_input(std::string("cannot read the script for ") + option, {}, file.string(),
                      "Give a file that you can read.");
}

Status collect_files(const BuildOptions& options, Inputs& inputs) {
    for (const auto& [file, option] : {std::pair{&options.pre_install, "--pre-install"},
                                       std::pair{&options.post_install, "--post-install"},
                                       std::pair{&options.environ_script, "--environ"}}) {
        if (!*file) continue;
        TRY(check_script(**file, option));
        inputs.files.push_back(**file);
    }
    for (const auto& file : inputs.files) {
        TRY(prefix::check_outside(file, inputs.prefix));
        inputs.kept.push_back(TRY(prefix::read_input(file)));
    }
    remember_secrets_of(inputs);
    if (options.log_copy) return prefix::check_outside(*options.log_copy, inputs.prefix);
    return {};
}

Status check_staging(const fs::path& parent, const fs::path& prefix) {
    if (parent.empty()) return {};
    auto resolved = TRY(resolve(parent));
    if (!is_below(resolved, prefix)) return {};
    return fail_input("the staging directory is inside the prefix", {}, resolved.string(),
                      "Choose a directory outside the prefix, on a local disk of this node, with --tmpdir.");
}

Status choose_uv(const BuildOptions& options, Inputs& inputs) {
    // Skip wrappers of an installation: their uv would run in its session, which cannot see the build.
    inputs.uv = find_program("uv", search_path(inputs.environment), [](const fs::path& one) {
        return manifest::installation_of_program(one).empty();
    });
    if (options.installer == pip::Installer::uv && !inputs.uv)
        return fail_input("uv is not on PATH", {}, {}, "Install uv, or use --installer pip.");
    return {};
}

Status check_isolation(const BuildOptions& options) {
    if (!options.settings.base.isolate || options.settings.base.reference != "host") return {};
    return fail_input("--isolate needs a base image", "the base is the host's root filesystem", {},
                      "Choose an image with --base, such as docker://debian:13.");
}

/// Reads conda's configuration, and that of the site that goes with it.
Status read_conda_config(const BuildOptions& options, Inputs& inputs) {
    inputs.conda_config =
        TRY(options.conda.use_config ? conda::read_config(current_environment()) : conda::Config());
    conda::read_s3(current_environment(), inputs.conda_config);
    inputs.conda_config.url_mirrors = options.site.mirrors;
    auto& of_machine = inputs.conda_config.site_channels;
    of_machine.insert(of_machine.end(), options.site.machine_channels.begin(),
                      options.site.machine_channels.end());
    return {};
}

/// A site's default channels yield to .condarc; forced ones do not.
void add_channels(const SiteSettings& site, conda::Config& config) {
    auto& channels = config.channels;
    if (site.channels_forced || channels.empty()) channels = site.channels;
    channels.insert(channels.begin(), site.first_channels.begin(), site.first_channels.end());
    channels.insert(channels.end(), site.last_channels.begin(), site.last_channels.end());
}

/// Turns the inputs into those of a conda environment of Python and pip, to which the requirements are added.
Status take_python_of_conda(const BuildOptions& options, Inputs& inputs) {
    if (options.system_site_packages)
        return fail_input("--system-site-packages needs a Python of the host or of a base",
                          "Python would come from conda (" + inputs.python.reason + ")", {},
                          "Leave it out, or give --python the path of an interpreter.");
    TRY(read_conda_config(options, inputs));
    add_channels(options.site, inputs.conda_config);
    inputs.mode = "conda";
    auto python = inputs.python.version.empty() ? "python" : "python=" + inputs.python.version;
    if (const auto& converted = inputs.requirements->converted; converted && inputs.python.version.empty())
        python += converted->python.text;
    auto& environment = inputs.conda.emplace();
    for (const auto& text : {python, std::string("pip")})
        environment.dependencies.push_back(
            {.spec = TRY(conda::parse_match_spec(text)), .where = inputs.spec.string()});
    inputs.more_requirements.push_back({.file = inputs.spec, .read = std::move(*inputs.requirements)});
    inputs.requirements.reset();
    return {};
}

Status choose_python(const BuildOptions& options, Inputs& inputs) {
    // A base brings its own interpreters, which are looked up inside it.
    if (options.settings.base.reference != "host" && !pip::is_of_conda(options.python)) return {};
    inputs.python = TRY(pip::choose_python(options.python, inputs.uv, inputs.environment));
    return inputs.python.interpreter ? Status() : take_python_of_conda(options, inputs);
}

Status choose_programs(const BuildOptions& options, Inputs& inputs) {
    TRY(check_isolation(options));
    if (options.bundle_python && options.settings.base.reference != "host")
        return fail_input("--bundle-python is only for interpreters of the host",
                          "the base has its own interpreter", options.settings.base.reference,
                          "Leave it out.");
    TRY(choose_uv(options, inputs));
    return inputs.requirements ? choose_python(options, inputs) : Status();
}

Status refuse_pip_options(const BuildOptions& options, const std::string& file) {
    if (!options.python_typed && !options.bundle_python) return {};
    return fail_input(options.bundle_python ? "--bundle-python is only for pip requirements"
                                            : "--python is only for pip requirements",
                      "a conda environment has its own Python", file,
                      "Request a version in that file: `- python=3.11`.");
}

Status refuse_conda_options(const BuildOptions& options, const std::string& file) {
    if (!options.conda.cuda.empty())
        return fail_input("--cuda is only for conda environments", "pip installs what this file lists", file,
                          "Leave it out.");
    if (!options.conda.requirements.empty())
        return fail_input("-r is only for conda environments", "pip installs what this file lists", file,
                          "Put everything in this file, or add the rest with `containerize update DIR -r "
                          "FILE`.");
    return {};
}

/// Determines the working directory and the environment.
Status read_surroundings(Inputs& inputs) {
    std::error_code failed;
    inputs.working_directory = fs::current_path(failed);
    if (failed)
        return fail_input("the working directory no longer exists", failed.message(), {},
                          "Change to another directory.");
    inputs.environment = clean_environment();
    remember_configured_secrets(inputs.environment);
    return {};
}

/// Checks that apply to every kind of build.
Status check_rest(const BuildOptions& options, Inputs& inputs) {
    TRY(collect_files(options, inputs));
    inputs.source_date_epoch = TRY(source_date_epoch());
    if (inputs.requirements && inputs.requirements->converted)
        for (const auto& note : inputs.requirements->converted->notes)
            log::info("Note: " + note);
    return check_staging(options.staging_parent, inputs.prefix);
}

/// Checks the pip requirements, and adds what they include to the inputs. A pre-install script may create the
/// files that they name.
Status check_pip_lines(const BuildOptions& options, const std::vector<Located>& pip, Inputs& inputs) {
    if (options.pre_install) return {};
    const auto included = TRY(spec::check_requirements(pip, inputs.spec.parent_path()));
    inputs.files.insert(inputs.files.end(), included.begin(), included.end());
    return {};
}

// Adds the -r files to the pip requirements that the environment file lists.
Status add_requirements(const BuildOptions& options, Inputs& inputs) {
    auto& pip = inputs.conda->pip;
    for (const auto& given : options.conda.requirements) {
        auto file = TRY(resolve(given));
        if (!quiet::is_regular_file(file))
            return fail_input("cannot read the requirements", {}, given.string(),
                              "Give -r a file that you can read.");
        pip.push_back({.text = "-r " + file.string(), .where = "-r"});
        if (options.pre_install) inputs.files.push_back(file);
    }
    return check_pip_lines(options, pip, inputs);
}

/// The paths that the user asks for, followed by the site's.
Status collect_wrapper_paths(const BuildOptions& options, Inputs& inputs) {
    auto asked = TRY(prefix::check_wrapper_paths(options.wrapper_paths, inputs.prefix));
    auto paths = options.wrapper_paths;
    paths.insert(paths.end(), options.site.wrapper_paths.begin(), options.site.wrapper_paths.end());
    inputs.wrapper_paths = TRY(prefix::check_wrapper_paths(paths, inputs.prefix));
    // The user's paths come first, so the rest are the site's.
    inputs.optional_wrapper_paths.assign(
        inputs.wrapper_paths.begin() + static_cast<std::ptrdiff_t>(asked.size()), inputs.wrapper_paths.end());
    return {};
}

spec::LockChoice choice_of(const BuildOptions& options, const Inputs& inputs) {
    return {.subdir = options.conda.subdir,
            .environment = options.conda.environment,
            .categories = options.conda.categories,
            .groups = options.conda.groups,
            .extras = options.conda.extras,
            .machine = [&] {
                return conda::virtual_packages(inputs.environment,
                                               {.subdir = options.conda.subdir, .cuda = options.conda.cuda},
                                               image::DirectoryView("/"));
            }};
}

/// Reads the -r files, which are installed last.
Status read_more_requirements(const BuildOptions& options, Inputs& inputs) {
    for (const auto& given : options.conda.requirements) {
        auto file = TRY(resolve(given));
        auto read = TRY(spec::read_requirements(file, inputs.working_directory));
        inputs.files.insert(inputs.files.end(), read.files.begin(), read.files.end());
        inputs.more_requirements.push_back({.file = std::move(file), .read = std::move(read)});
    }
    return {};
}

/// Fails if the file leaves out newer packages and the user does not.
Status check_exclude_newer(const BuildOptions& options, const spec::CondaEnvironment& environment) {
    const auto& written = environment.exclude_newer;
    if (written.text.empty() || options.exclude_newer) return {};
    return fail_input("the `exclude-newer` of this file must be given as an option",
                      "it would have no effect otherwise", written.where,
                      "Give --exclude-newer " + shell_quoted(printable_line(written.text)) + ".");
}

Status take_converted(spec::ConvertedFile converted, Inputs& inputs) {
    inputs.requirements = TRY(spec::requirements_of(std::move(converted), inputs.spec));
    inputs.files = inputs.requirements->files;
    return {};
}

} // namespace

Status read_spec(const BuildOptions& options, Inputs& inputs) {
    auto kind = TRY(spec::recognise_supported(options.spec));
    const auto& format = spec::format_of(kind);
    inputs.spec = TRY(resolve(options.spec));
    TRY(read_surroundings(inputs));
    const auto choice = choice_of(options, inputs);
    TRY(spec::check_choice(format, inputs.spec, choice));
    if (const auto* read = std::get_if<spec::RequirementsReader>(&format.reader)) {
        inputs.requirements = TRY((*read)(inputs.spec, inputs.working_directory));
        inputs.files = inputs.requirements->files;
        return refuse_conda_options(options, inputs.spec.string());
    }
    if (const auto* read = std::get_if<spec::ConvertedReader>(&format.reader)) {
        TRY(refuse_conda_options(options, inputs.spec.string()));
        return take_converted(TRY((*read)(inputs.spec, choice)), inputs);
    }
    inputs.mode = "conda";
    TRY(refuse_pip_options(options, inputs.spec.string()));
    inputs.files = {inputs.spec};
    TRY(read_conda_config(options, inputs));
    if (const auto* read = std::get_if<spec::EnvironmentReader>(&format.reader)) {
        inputs.conda = TRY((*read)(inputs.spec, choice));
        TRY(check_exclude_newer(options, *inputs.conda));
        if (inputs.conda->channels.empty()) add_channels(options.site, inputs.conda_config);
        return add_requirements(options, inputs);
    }
    if (options.exclude_newer)
        return fail_input("--exclude-newer cannot be combined with a list of exact packages", {},
                          inputs.spec.string(),
                          "Leave out the option, or give it to the command that makes the list.");
    inputs.locked = TRY(spec::read_locked(inputs.spec, kind, choice));
    if (const auto& problem = inputs.conda_config.s3_problem)
        for (const auto& package : inputs.locked->packages)
            if (package.url.starts_with("s3://")) return fail(Error(*problem));
    return check_pip_lines(options, inputs.locked->pip, inputs);
}

namespace {

Status check_platform(const BuildOptions& options) {
    const auto& wanted = options.conda.subdir;
    if (wanted == conda::this_subdir()) return {};
    return fail_input("cannot create an installation for " + wanted + " on this machine",
                      "a build runs programs of the environment, and this machine is " + conda::this_subdir(),
                      {}, "Create it on a " + wanted + " machine. Here, --dry-run shows its packages.");
}

/// The part that all new installations have in common.
Result<Inputs> inputs_of_new(const BuildOptions& options) {
    Inputs inputs;
    inputs.prefix = TRY(prefix::check_prefix(options.prefix, options.force));
    TRY(prefix::check_maintainer(inputs.prefix));
    inputs.settings = options.settings;
    return inputs;
}

} // namespace

Result<Inputs> check_inputs(const BuildOptions& options) {
    TRY(check_platform(options));
    auto inputs = TRY(inputs_of_new(options));
    TRY(read_spec(options, inputs));
    if (inputs.locked) TRY(read_more_requirements(options, inputs));
    TRY(collect_wrapper_paths(options, inputs));
    TRY(check_rest(options, inputs));
    TRY(choose_programs(options, inputs));
    return inputs;
}

Result<Inputs> check_wrap(const BuildOptions& options, const fs::path& source, bool mask) {
    auto inputs = TRY(inputs_of_new(options));
    inputs.wrap_source = TRY(resolve(source));
    if (mask) inputs.mask = inputs.wrap_source;
    inputs.mode = "wrapdisk";
    std::error_code failed;
    if (!fs::is_directory(inputs.wrap_source, failed))
        return fail_input("cannot use the software's directory",
                          failed                           ? failed.message()
                          : fs::exists(inputs.wrap_source) ? "it is not a directory"
                                                           : "",
                          source.string(), "Give the directory in which the software is installed.");
    if (is_below(inputs.prefix, inputs.wrap_source) || is_below(inputs.wrap_source, inputs.prefix))
        return fail_input("the prefix and the software's directory must not contain each other", {},
                          source.string(), "Choose another --prefix.");
    TRY(read_surroundings(inputs));
    // Paths may be given as they are on disk, or relative to the source directory.
    std::vector<std::string> given;
    for (const auto& path : options.wrapper_paths) {
        const auto whole = fs::path(path).is_absolute() ? resolve(path) : Result<fs::path>(path);
        const bool on_disk = whole && is_below(*whole, inputs.wrap_source);
        given.push_back(on_disk ? whole->lexically_relative(inputs.wrap_source).string() : path);
    }
    inputs.wrapper_paths = TRY(prefix::check_wrapper_paths(given, inputs.prefix));
    // A post-install script may create missing ones.
    for (const auto& path : inputs.wrapper_paths)
        if (path != "bin" && !options.post_install && !fs::exists(inputs.wrap_source / path, failed))
            return fail_input("the software has no such directory or program", path, source.string(),
                              "Give -w paths below the software's directory.");
    TRY(check_rest(options, inputs));
    return inputs;
}

Result<Inputs> check_import(const BuildOptions& options, const fs::path& directory) {
    auto inputs = TRY(inputs_of_new(options));
    auto tykky = TRY(read_tykky_installation(directory));
    if (is_below(inputs.prefix, tykky.directory) || is_below(tykky.directory, inputs.prefix))
        return fail_input("the prefix and the tykky installation must not contain each other",
                          "the import does not change the tykky installation", directory.string(),
                          "Choose another prefix.");
    inputs.mode = tykky.mode;
    inputs.mask = tykky.path_inside;
    inputs.files = tykky.records;
    TRY(read_surroundings(inputs));
    inputs.wrapper_paths = TRY(prefix::check_wrapper_paths(tykky.wrapper_paths, inputs.prefix));
    // tykky ignored missing paths as well.
    inputs.optional_wrapper_paths.assign(inputs.wrapper_paths.begin() + 1, inputs.wrapper_paths.end());
    inputs.tykky = std::move(tykky);
    TRY(check_rest(options, inputs));
    return inputs;
}

Result<Inputs> check_wrap_container(const BuildOptions& options) {
    auto inputs = TRY(inputs_of_new(options));
    inputs.mode = "wrapcont";
    inputs.wrapper_paths = {"bin"};
    for (const auto& path : options.wrapper_paths) {
        const auto plain = fs::path(path).lexically_normal();
        if (!plain.is_absolute())
            return fail_input("the path is not absolute", {}, path,
                              "Give -w absolute paths in the container, such as /opt/tool/bin.");
        inputs.programs.push_back(plain.has_filename() ? plain.string() : plain.parent_path().string());
    }
    if (inputs.programs.empty())
        return fail_input(
            "-w/--wrapper-paths is missing", "it selects the programs that get wrappers", {},
            "Give the container's directories that hold the programs, such as -w /usr/local/bin.");
    TRY(read_surroundings(inputs));
    TRY(check_rest(options, inputs));
    return inputs;
}

Result<Inputs> check_update(const BuildOptions& options, const manifest::Manifest& previous) {
    Inputs inputs;
    inputs.prefix = previous.prefix;
    inputs.settings = previous.settings;
    if (options.change_engine) inputs.settings.engine = options.settings.engine;
    inputs.mode = previous.build.contains("conda_packages") ? "conda"
                  : previous.build.contains("source")       ? "wrapdisk"
                                                            : "venv";
    TRY(options.spec.empty() ? read_surroundings(inputs) : read_spec(options, inputs));
    if (!inputs.conda) TRY(read_more_requirements(options, inputs)); // otherwise they are among its pip lines
    auto paths = previous.wrapper_paths;
    paths.insert(paths.end(), options.wrapper_paths.begin(), options.wrapper_paths.end());
    inputs.wrapper_paths = TRY(prefix::check_wrapper_paths(paths, inputs.prefix));
    TRY(check_rest(options, inputs));
    TRY(choose_uv(options, inputs));
    return inputs;
}

} // namespace containerize::inputs

#include "install/module_files.h"

#include "util/filesystem.h"

#include <fmt/format.h>

namespace containerize::install {

namespace {

std::string lua_quoted(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += c == '\n' ? ' ' : c;
    }
    return quoted + "\"";
}

std::string tcl_quoted(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\' || c == '$' || c == '[' || c == ']') quoted += '\\';
        quoted += c == '\n' ? ' ' : c;
    }
    return quoted + "\"";
}

std::string description(const ModuleRequest& request) {
    return fmt::format("Python environment {}, made {} by containerize", request.prefix.filename().string(),
                       request.created);
}

std::string help(const ModuleRequest& request) {
    return fmt::format(
        "{}. Its programs (python, pip, torchrun, ...) are on PATH and run as they are. In job "
        "scripts, `srun containerize-rank python train.py` gives each task its rank. "
        "What is in it: {}/share/packages.txt",
        description(request), request.prefix.string());
}

// The family: Lmod and Tcl modules keep two environments from being loaded at once, whatever their names.
std::string lua(const ModuleRequest& request) {
    const auto prefix = request.prefix.string();
    return fmt::format("help({})\n"
                       "whatis({})\n"
                       "family(\"containerize_environment\")\n"
                       "prepend_path(\"PATH\", {})\n"
                       "setenv(\"CONTAINERIZE_PREFIX\", {})\n"
                       "setenv(\"CONTAINERIZE_IMAGE\", {})\n"
                       "setenv(\"CONTAINERIZE_RUNSCRIPTS\", {})\n",
                       lua_quoted(help(request)), lua_quoted(description(request)),
                       lua_quoted(prefix + "/bin"), lua_quoted(prefix),
                       lua_quoted(prefix + "/" + request.image), lua_quoted(prefix + "/bin"));
}

std::string tcl(const ModuleRequest& request) {
    const auto prefix = request.prefix.string();
    return fmt::format("#%Module1.0\n"
                       "proc ModulesHelp {{}} {{ puts stderr {} }}\n"
                       "module-whatis {}\n"
                       "family containerize_environment\n"
                       "prepend-path PATH {}\n"
                       "setenv CONTAINERIZE_PREFIX {}\n"
                       "setenv CONTAINERIZE_IMAGE {}\n"
                       "setenv CONTAINERIZE_RUNSCRIPTS {}\n",
                       tcl_quoted(help(request)), tcl_quoted(description(request)),
                       tcl_quoted(prefix + "/bin"), tcl_quoted(prefix),
                       tcl_quoted(prefix + "/" + request.image), tcl_quoted(prefix + "/bin"));
}

} // namespace

Status write_module_files(const std::filesystem::path& directory, const ModuleRequest& request) {
    std::error_code failed;
    fs::create_directories(directory, failed);
    if (failed) return fail_errno("cannot make a directory", directory.string(), failed.value());
    const auto name = request.prefix.filename().string();
    if (auto written = write_file(directory / (name + ".lua"), lua(request)); !written) return written;
    return write_file(directory / name, tcl(request));
}

} // namespace containerize::install

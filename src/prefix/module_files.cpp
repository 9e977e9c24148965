#include "prefix/module_files.h"

#include "core/filesystem.h"
#include "core/text.h"
#include "launch/launch_plan.h"

#include <algorithm>

#include <fmt/format.h>

namespace containerize::prefix {

namespace {

std::string quoted(std::string text, std::string_view special) {
    std::ranges::replace(text, '\n', ' ');
    return "\"" + escaped(text, special) + "\"";
}

std::string lua_quoted(const std::string& text) {
    return quoted(text, "\"\\");
}

std::string tcl_quoted(const std::string& text) {
    return quoted(text, "\"\\$[]{}");
}

std::string description(const ModuleRequest& request) {
    return fmt::format("Python environment {}, created {} by containerize",
                       request.prefix.filename().string(), request.created);
}

std::string help(const ModuleRequest& request) {
    return fmt::format("{}. Its programs (python, pip, torchrun, ...) are on PATH and run as usual. In job "
                       "scripts, `srun containerize-rank python train.py` gives each task its rank. Its "
                       "packages are listed in {}/share/packages.txt.",
                       description(request), request.prefix.string());
}

// The `family` keeps two environments from being loaded at once, whatever their names. The prefix is derived
// from the file's location, so that it survives a move; a copy elsewhere uses the path that the installation
// was built for.
std::string lua(const ModuleRequest& request) {
    return fmt::format("help({})\n"
                       "whatis({})\n"
                       "family(\"containerize_environment\")\n"
                       "local prefix = {}\n"
                       "local above = myFileName():match(\"^(.*)/share/modulefiles/[^/]*$\")\n"
                       "if above and isFile(pathJoin(above, \"{}\")) then prefix = above end\n"
                       "prepend_path(\"PATH\", prefix .. \"/bin\")\n"
                       "setenv(\"CONTAINERIZE_PREFIX\", prefix)\n"
                       "setenv(\"CONTAINERIZE_IMAGE\", prefix .. {})\n"
                       "setenv(\"CONTAINERIZE_RUNSCRIPTS\", prefix .. \"/bin\")\n",
                       lua_quoted(help(request)), lua_quoted(description(request)),
                       lua_quoted(request.prefix.string()), launch::manifest_name,
                       lua_quoted("/" + request.image));
}

std::string tcl(const ModuleRequest& request) {
    return fmt::format("#%Module1.0\n"
                       "proc ModulesHelp {{}} {{ puts stderr {} }}\n"
                       "module-whatis {}\n"
                       "if {{[llength [info commands family]]}} {{ family containerize_environment }}\n"
                       "set prefix {}\n"
                       "set above [file dirname [file dirname [file dirname $ModulesCurrentModulefile]]]\n"
                       "if {{[file exists $above/{}]}} {{ set prefix $above }}\n"
                       "prepend-path PATH $prefix/bin\n"
                       "setenv CONTAINERIZE_PREFIX $prefix\n"
                       "setenv CONTAINERIZE_IMAGE \"$prefix{}\n"
                       "setenv CONTAINERIZE_RUNSCRIPTS $prefix/bin\n",
                       tcl_quoted(help(request)), tcl_quoted(description(request)),
                       tcl_quoted(request.prefix.string()), launch::manifest_name,
                       tcl_quoted("/" + request.image).substr(1));
}

} // namespace

Status write_module_files(const std::filesystem::path& directory, const ModuleRequest& request) {
    TRY(make_directories(directory));
    const auto name = request.prefix.filename().string();
    TRY(write_file(directory / (name + ".lua"), lua(request)));
    return write_file(directory / name, tcl(request));
}

} // namespace containerize::prefix

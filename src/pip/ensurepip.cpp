#include "pip/ensurepip.h"

#include "core/filesystem.h"
#include "core/text.h"

namespace containerize::pip {

namespace {

/// Prints the paths of the copies. Distributions keep the wheels outside Python's own directory.
constexpr const char* program = R"(
import ensurepip, os, shutil, sys, sysconfig
own = os.path.join(os.path.dirname(ensurepip.__file__), '_bundled')
places = [sysconfig.get_config_var('WHEEL_PKG_DIR'), own, '/usr/share/python-wheels']
wanted = {'pip': ensurepip.version()}
if sys.version_info < (3, 12):
    wanted['setuptools'] = getattr(ensurepip, '_SETUPTOOLS_VERSION', '')

def find(name, version):
    for place in filter(None, places):
        wheels = [file for file in sorted(os.listdir(place) if os.path.isdir(place) else [])
                  if file.startswith(name + '-') and file.endswith('.whl')]
        exact = [file for file in wheels if file.startswith('%s-%s-' % (name, version))]
        if wheels:
            return os.path.join(place, (exact or wheels)[-1])

found = [find(*one) for one in wanted.items()]
if all(found):
    for file in found:
        print(shutil.copy(file, sys.argv[1]))
)";

} // namespace

Result<std::vector<std::filesystem::path>>
copy_wheels_for_venvs(const std::string& python,
                      const std::function<Command(std::vector<std::string>)>& inside,
                      const std::filesystem::path& directory) {
    TRY(make_directory(directory, "cannot create a staging directory"));
    const auto answer = TRY(capture(inside({python, "-I", "-c", program, directory.string()})));
    std::vector<std::filesystem::path> wheels;
    if (!answer.ok()) return wheels;
    for (const auto line : split(answer.output, '\n'))
        if (!line.empty()) wheels.emplace_back(line);
    return wheels;
}

} // namespace containerize::pip

// Installs a wheel into a directory as an environment's builder does, for comparison with pip.
// Usage: install_wheel WHEEL DIRECTORY PREFIX PYTHON-VERSION NAME
// DIRECTORY gets the files of the venv PREFIX.

#include "core/filesystem.h"
#include "wheel/archive.h"
#include "wheel/installation.h"
#include "wheel/scripts.h"

#include <cstdio>
#include <fstream>
#include <map>
#include <span>
#include <string>

namespace containerize::wheel {
namespace {

Result<std::string> content_of(const ReadMore& read) {
    std::string content;
    for (;;) {
        const auto bytes = TRY(read());
        if (bytes.empty()) return content;
        content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
}

Status write_at(const fs::path& path, const std::string& content, bool executable) {
    TRY(make_directories(path.parent_path()));
    std::ofstream(path, std::ios::binary) << content; // write_file() would wait for the disk
    std::error_code failed;
    if (executable) fs::permissions(path, fs::perms(0755), failed);
    return {};
}

Status install(const fs::path& file, const fs::path& directory, const InstallRequest& request) {
    const auto open = TRY(OpenFile::open(file));
    const auto archive = TRY(WheelArchive::open(open, file.filename().string()));
    std::vector<PackagedFile> files;
    std::map<Place, std::string> contents;
    const auto visit = [&](const WheelEntry& entry, const ReadMore& read) -> Status {
        auto content = TRY(content_of(read));
        PackagedFile packaged{.place = entry.place, .executable = entry.mode == 0755};
        if (entry.place.scheme == Scheme::scripts && wants_interpreter(content)) packaged.script = content;
        files.push_back(std::move(packaged));
        contents[entry.place] = std::move(content);
        return {};
    };
    const auto warnings = TRY(archive.payload(visit));
    for (const auto& warning : warnings)
        std::puts(warning.c_str());
    const auto plan = TRY(plan_installation(archive.dist_info(), files, request));
    for (const auto& one : files)
        if (!plan.replaced.contains(one.place))
            TRY(write_at(directory / path_in_prefix(request.layout, one.place), contents[one.place],
                         one.executable));
    for (const auto& one : plan.generated)
        TRY(write_at(directory / one.path, one.content, one.executable));
    return {};
}

} // namespace
} // namespace containerize::wheel

int main(int argc, char** argv) {
    using namespace containerize;
    const std::span arguments(argv, static_cast<std::size_t>(argc));
    if (arguments.size() != 6) {
        std::fputs("usage: install_wheel WHEEL DIRECTORY PREFIX PYTHON-VERSION NAME\n", stderr);
        return 2;
    }
    const std::string python = arguments[4];
    const auto done = wheel::install(arguments[1], arguments[2],
                                     {.layout = wheel::venv_layout(python, arguments[5]),
                                      .interpreter = std::string(arguments[3]) + "/bin/python",
                                      .python = python,
                                      .requested = true});
    if (done) return 0;
    std::fputs((to_string(done.error()) + "\n").c_str(), stderr);
    return 1;
}

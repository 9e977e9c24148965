#include "cli/output_file.h"

#include "core/filesystem.h"
#include "core/printable.h"
#include "util/log.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <sys/stat.h>
#include <unistd.h>

namespace containerize::cli {

namespace {

void limit_readers_to_those_of(const fs::path& input) {
    struct stat info {};
    const mode_t mode = stat(input.c_str(), &info) == 0 ? info.st_mode : 0;
    const mode_t hidden = ~mode & (S_IRWXG | S_IRWXO);
    umask(umask(hidden) | hidden);
}

} // namespace

void add_output_option(CLI::App& command, std::string& output) {
    command.add_option("-o,--output", output, "File to write")
        ->type_name("FILE")
        ->default_str("standard output");
}

Status check_output(const fs::path& output, const fs::path& input) {
    if (output.empty()) return {};
    struct stat info {};
    std::error_code failed;
    const auto directory = fs::absolute(output, failed).parent_path();
    if (!quiet::is_directory(directory))
        return fail_input("this directory does not exist", {}, directory.string(),
                          "Create it, or give another -o FILE.");
    const bool exists = lstat(output.c_str(), &info) == 0;
    if (exists && fs::equivalent(output, input, failed))
        return fail_input("the result would replace its input", {}, output.string(), "Give another -o FILE.");
    if (exists && !S_ISREG(info.st_mode))
        return fail_input("only a regular file can be replaced", {}, output.string(),
                          "Give another -o FILE, or none for standard output.");
    if (access(directory.c_str(), W_OK) != 0)
        return fail_input("cannot write to this directory", std::strerror(errno), directory.string(),
                          "Give another -o FILE.");
    return {};
}

Status write_output(const fs::path& output, const fs::path& input, const spec::WrittenList& list) {
    for (const auto& note : list.notes)
        log::warn(printable_line(note) + ".");
    if (output.empty()) {
        std::fputs(list.text.c_str(), stdout);
        return {};
    }
    limit_readers_to_those_of(input);
    return write_file(output, list.text);
}

} // namespace containerize::cli

#include "cli/exec.h"

#include "core/core_dumps.h"
#include "core/filesystem.h"
#include "core/text.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>

#include <elf.h>
#include <unistd.h>

namespace containerize::cli {

namespace {

std::unexpected<Error> incomplete(const char* why, const std::filesystem::path& part) {
    return fail({.what = "containerize is not completely installed",
                 .why = why,
                 .where = part.string(),
                 .hint = "Install or unpack it again."});
}

/// The table of sections is at the end of a program.
bool is_truncated(const std::filesystem::path& program) {
    Elf64_Ehdr header{};
    std::ifstream file(program, std::ios::binary);
    if (!file) return false; // who needs it says why it cannot be read
    if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return true;
    std::error_code failed;
    return header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize >
           std::filesystem::file_size(program, failed);
}

} // namespace

std::vector<char*> argument_vector(const std::vector<std::string>& words) {
    std::vector<char*> list;
    for (const auto& word : words)
        list.push_back(const_cast<char*>(word.c_str()));
    list.push_back(nullptr);
    return list;
}

std::string shell_line(const std::vector<std::string>& words) {
    std::string line;
    for (const auto& word : words)
        line.append(line.empty() ? "" : " ").append(shell_quoted(word));
    return line;
}

std::unexpected<Error> become_inside(const std::filesystem::path& prefix, const char* wrapper,
                                     const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {(prefix / "bin" / wrapper).string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    restore_core_limit();
    execv(words.front().c_str(), argument_vector(words).data());
    return fail_errno("cannot run", words.front());
}

std::filesystem::path own_program() {
    std::error_code failed;
    return std::filesystem::read_symlink("/proc/self/exe", failed);
}

std::filesystem::path installation_tree() {
    return own_program().parent_path().parent_path();
}

Status check_installation_tree() {
    const auto tree = installation_tree();
    for (const char* part :
         {"libexec/containerize/launcher", "libexec/containerize/session", "share/containerize/python",
          "share/containerize/host", "share/containerize/profile"})
        if (!quiet::exists(tree / part)) return incomplete("a file is missing", tree / part);
    for (const char* program : {"libexec/containerize/launcher", "libexec/containerize/session"})
        if (is_truncated(tree / program)) return incomplete("the file is truncated", tree / program);
    return {};
}

void forget_tasks_of_job() {
    for (const char* name : {"SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK", "SLURM_CPU_BIND"})
        unsetenv(name);
}

} // namespace containerize::cli

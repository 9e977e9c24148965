#include "cli/exec.h"

#include "core/filesystem.h"
#include "core/text.h"

#include <cstdlib>

namespace containerize::cli {

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

std::filesystem::path installation_tree() {
    std::error_code failed;
    return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path().parent_path();
}

Status check_installation_tree() {
    const auto tree = installation_tree();
    for (const char* part :
         {"libexec/containerize/launcher", "libexec/containerize/session", "share/containerize/python",
          "share/containerize/host", "share/containerize/profile"})
        if (!quiet::exists(tree / part))
            return fail({.what = "containerize is not completely installed",
                         .why = "a file is missing",
                         .where = (tree / part).string(),
                         .hint = "Install or unpack it again."});
    return {};
}

void forget_tasks_of_job() {
    for (const char* name : {"SLURM_GPUS_PER_TASK", "SLURM_TRES_PER_TASK", "SLURM_CPU_BIND"})
        unsetenv(name);
}

} // namespace containerize::cli

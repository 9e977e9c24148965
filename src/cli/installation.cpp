#include "cli/installation.h"

#include "core/filesystem.h"
#include "core/variables.h"
#include "launch/launch_plan.h"
#include "launch/root_key.h"
#include "manifest/manifest.h"
#include "util/process.h"

namespace containerize::cli {

Result<fs::path> find_installation(const std::string& named) {
    const auto variables = current_environment();
    auto directory = named.empty() ? variable(variables, "CONTAINERIZE_PREFIX") : named;
    if (directory.empty())
        if (const auto python = find_program("python", variable(variables, "PATH")))
            directory = manifest::installation_of_program(*python).string();
    if (directory.empty())
        return fail_input("no installation is given, and none is on PATH", {}, {},
                          "Give one with --env DIR, or put its bin directory on PATH.");
    return manifest::resolve_installation(directory);
}

std::optional<launch::SessionHandle> live_session(const fs::path& prefix) {
    const auto state = launch::open_state_directory();
    if (!state) return std::nullopt;
    auto session = launch::find_session(*state, launch::root_key(prefix.string()));
    if (!session || !launch::read_plan(*session, prefix.string())) return std::nullopt;
    return session;
}

} // namespace containerize::cli

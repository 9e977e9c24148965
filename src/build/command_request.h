// What `containerize exec` is asked for: a specification that builds can read, and a name for the
// environment.
#pragma once

#include "core/error.h"
#include "inputs/inputs.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace containerize::build {

struct CommandRequest {
    std::vector<std::string> packages = {};               ///< pip requirements, or match specifications
    std::vector<std::filesystem::path> requirements = {}; ///< requirements files, absolute; not with `conda`
    bool conda = false;
    std::vector<std::string> channels = {}; ///< of conda; empty: those of the configuration
    /// As typed: a duration means the same environment every day.
    std::optional<std::string> exclude_newer = {};
};

/// Refuses (Fault::input) what is no single package, such as an option of pip.
Status check_packages(const CommandRequest& request);

/// The name of the file in which builds expect specification_of().
const char* specification_name(const CommandRequest& request);
/// The text of a requirements file, or of an environment file.
std::string specification_of(const CommandRequest& request);

/// What the user asked for, to be shown. May contain secrets.
std::vector<std::string> words_of(const CommandRequest& request);

/// What of this machine decides how packages are chosen, and which Python an environment for pip gets.
Result<nlohmann::json> machine_of(const inputs::BuildOptions& options, const inputs::Inputs& inputs);

/// `key_digits` hexadecimal digits: a digest of all that decides what the environment contains. `inputs` are
/// those of inputs::read_spec(), `machine` is that of machine_of(). Logins do not count, as they do not
/// change what is installed.
std::string key_of(const CommandRequest& request, const inputs::BuildOptions& options,
                   const inputs::Inputs& inputs, const nlohmann::json& machine);

} // namespace containerize::build

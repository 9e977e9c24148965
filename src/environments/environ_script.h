// --environ: records a script's effect on the environment once, so that no launch has to run it.
#pragma once

#include "core/error.h"
#include "launch/environment.h"
#include "util/process.h"

#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

namespace containerize::environments {

/// Parses the output of `env -0`. Skips exported shell functions.
Environment parse_listing(std::string_view listing);

/// Returns the changes from `before` to `after`, without variables that every shell changes. A value that was
/// only extended becomes a prepend or append, so that it applies to whatever the value is at launch. `prefix`
/// in values becomes "${prefix}".
std::vector<launch::EnvironmentChange> difference(const Environment& before, const Environment& after,
                                                  const std::filesystem::path& prefix);

/// Returns `environment` after the changes of a manifest, for an installation at `prefix`.
Environment with_changes(const Environment& environment, std::vector<launch::EnvironmentChange> changes,
                         const std::filesystem::path& prefix);

/// Sources `script` in bash, started with `environment`. The outcome's output lists the variables afterwards
/// (`env -0`) and is empty if the script ended the shell; its errors hold what the script printed. Without a
/// script, lists the variables of a plain bash.
Result<Outcome> source_script(const std::filesystem::path& script, const std::filesystem::path& directory,
                              const Environment& environment, const std::function<int()>& in_child);

/// Sources `script` in bash with `environment` and returns its changes. Fails if the script fails.
Result<std::vector<launch::EnvironmentChange>> record_script(const std::filesystem::path& script,
                                                             const std::filesystem::path& prefix,
                                                             const Environment& environment,
                                                             const std::function<int()>& in_child);

} // namespace containerize::environments

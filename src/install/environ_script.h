// --environ: a script whose effect on the environment is recorded once, so that no launch has to run it.
#pragma once

#include "runtime/environment.h"
#include "util/error.h"
#include "util/process.h"

#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

namespace containerize::install {

/// The variables that `env -0` printed.
Environment parse_listing(std::string_view listing);

/// What changed from `before` to `after`. Where a value was only extended, the change prepends or appends, so
/// that it works on whatever the value is at launch. What every shell changes by itself is left out. `prefix`
/// in values becomes
/// "${prefix}".
std::vector<runtime::EnvironmentChange> difference(const Environment& before, const Environment& after,
                                                   const std::filesystem::path& prefix);

/// `environment` after the changes of a manifest, for an installation at `prefix`.
Environment with_changes(const Environment& environment, std::vector<runtime::EnvironmentChange> changes,
                         const std::filesystem::path& prefix);

/// The variables of a bash in which `environment` is set and which has sourced `script`; nothing if the
/// script ended it. What the script says is in the outcome's errors. Without a script those that bash itself
/// makes.
Result<Outcome> source_script(const std::filesystem::path& script, const std::filesystem::path& directory,
                              const Environment& environment, const std::function<int()>& in_child);

/// Sources `script` in bash, started with `environment`, and returns what it changed.
Result<std::vector<runtime::EnvironmentChange>> record_script(const std::filesystem::path& script,
                                                              const std::filesystem::path& prefix,
                                                              const Environment& environment,
                                                              const std::function<int()>& in_child);

} // namespace containerize::install

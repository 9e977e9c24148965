#include "inputs/find_base.h"

#include "base/base_image.h"
#include "core/filesystem.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include <gnu/libc-version.h>

namespace containerize::inputs {

namespace {

/// glibc 2.28, the baseline of manylinux_2_28: current wheels and conda-forge packages need it or newer.
constexpr int oldest_glibc_minor = 28;

/// The variables that an image sets, without those that must stay the caller's.
std::vector<launch::EnvironmentChange> changes_by(const std::vector<std::string>& variables) {
    using launch::EnvironmentChange;
    constexpr std::array<std::string_view, 7> of_caller = {"HOME", "USER", "LOGNAME", "SHELL",
                                                           "TERM", "PWD",  "HOSTNAME"};
    std::vector<EnvironmentChange> changes;
    for (const auto& variable : variables) {
        const auto equals = variable.find('=');
        if (equals == 0 || equals == std::string::npos) continue;
        const auto name = variable.substr(0, equals);
        if (std::ranges::find(of_caller, name) != of_caller.end()) continue;
        const auto kind = name == "PATH" ? EnvironmentChange::Kind::prepend : EnvironmentChange::Kind::set;
        changes.push_back({kind, name, variable.substr(equals + 1)});
    }
    return changes;
}

} // namespace

bool host_serves() {
    int major = 0, minor = 0;
    std::sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor);
    return major > 2 || minor >= oldest_glibc_minor;
}

Result<manifest::Base> find_base(const BuildOptions& options, const std::string& asked) {
    const std::string reference = asked != "auto" ? asked : host_serves() ? "host" : options.auto_base;
    if (reference.empty())
        return fail_input(
            "this host's C library is too old for current packages, and no base image is configured",
            std::string("it has version ") + gnu_get_libc_version(), {},
            "Set `auto_base` in the configuration, or choose an image with --base.");
    if (reference == "host") return manifest::Base();
    const auto bases = TRY(options.bases);
    auto image = TRY(base::obtain(reference, bases));
    return manifest::Base{.reference = std::move(image.reference),
                          .digest = std::move(image.digest),
                          .file = std::move(image.file),
                          .offset = image.offset,
                          .isolate = false,
                          .environment = changes_by(image.config.environment)};
}

} // namespace containerize::inputs

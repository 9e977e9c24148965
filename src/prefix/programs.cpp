#include "prefix/programs.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/version.h"
#include "launch/session_format.h"
#include "prefix/wrappers.h"

#include <algorithm>

namespace containerize::prefix {

namespace {

Age age_of(const std::string& version, const fs::path& prefix, const fs::path& libexec) {
    if (is_newer(version, this_version)) return Age::newer;
    if (version != this_version) return Age::older;
    const bool same = same_content(prefix / launcher_file, libexec / "launcher") &&
                      same_content(prefix / launch::session_program_file(), libexec / "session");
    return same ? Age::current : Age::other_build;
}

bool is_same(const fs::path& one, const fs::path& other) {
    std::error_code no_link;
    const auto target = fs::read_symlink(one, no_link);
    if (!no_link) return fs::read_symlink(other, no_link) == target;
    std::error_code failed;
    if (fs::equivalent(one, other, failed)) return true;
    return fs::symlink_status(one, failed).permissions() == fs::symlink_status(other, failed).permissions() &&
           same_content(one, other);
}

} // namespace

Programs programs_of(const manifest::Manifest& manifest, const fs::path& prefix, const fs::path& libexec) {
    return {.version = manifest.programs_version, .age = age_of(manifest.programs_version, prefix, libexec)};
}

std::string difference(const Programs& programs) {
    const std::string than_this = std::string(" than this containerize, ") + this_version;
    switch (programs.age) {
    case Age::older:
        return "older" + than_this;
    case Age::newer:
        return "newer" + than_this;
    case Age::other_build:
        return "of another build than this containerize";
    default:
        return {};
    }
}

std::string command_to_upgrade(const Programs& programs, const fs::path& prefix) {
    const bool replaceable = programs.age == Age::older || programs.age == Age::other_build;
    return replaceable ? "containerize upgrade " + shell_quoted(prefix.string()) : std::string();
}

bool has_programs(const fs::path& prefix, const fs::path& assembly,
                  const std::vector<std::string>& wrapper_paths) {
    auto directories = wrapper_paths;
    directories.push_back(fs::path(launch::session_program_file()).parent_path());
    return std::ranges::all_of(directories, [&](const std::string& directory) {
        return std::ranges::all_of(names_in(assembly / directory), [&](const std::string& name) {
            return is_same(assembly / directory / name, prefix / directory / name);
        });
    });
}

} // namespace containerize::prefix

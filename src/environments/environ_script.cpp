#include "environments/environ_script.h"

#include "util/log.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace containerize::environments {

namespace {

using launch::EnvironmentChange;

constexpr std::array<std::string_view, 5> changed_by_shells = {"_", "SHLVL", "PWD", "OLDPWD", "BASH_ENV"};

// Whether `c` continues a path: "/data/env2" and "/old/data/env" do not name "/data/env".
bool is_part_of_name(char c) {
    return c == '/' || c == '.' || c == '_' || c == '-' || (c & 0x80) != 0 ||
           std::isalnum(static_cast<unsigned char>(c)) != 0;
}

std::string with_placeholder(std::string value, const std::string& prefix) {
    static constexpr std::string_view placeholder = "${prefix}";
    for (std::size_t at = 0; (at = value.find(prefix, at)) != std::string::npos;) {
        const auto end = at + prefix.size();
        const bool begins = at == 0 || !is_part_of_name(value[at - 1]);
        const bool ends = end == value.size() || value[end] == '/' || !is_part_of_name(value[end]);
        if (begins && ends) value.replace(at, prefix.size(), placeholder);
        at += begins && ends ? placeholder.size() : prefix.size();
    }
    return value;
}

/// `before` is empty if the variable was not set. A script that writes "X=elements:$X" means to extend X even
/// then.
EnvironmentChange change_of(const std::string& name, const std::string& before, const std::string& after) {
    using Kind = EnvironmentChange::Kind;
    if (after.size() > before.size() + 1) {
        if (after.ends_with(":" + before))
            return {Kind::prepend, name, after.substr(0, after.size() - before.size() - 1)};
        if (after.starts_with(before + ":")) return {Kind::append, name, after.substr(before.size() + 1)};
    }
    return {Kind::set, name, after};
}

} // namespace

Environment parse_listing(std::string_view listing) {
    Environment variables;
    while (!listing.empty()) {
        const auto end = listing.find('\0');
        const auto entry = listing.substr(0, end);
        listing.remove_prefix(end == std::string_view::npos ? listing.size() : end + 1);
        const auto equals = entry.find('=');
        // Skip exported shell functions ("BASH_FUNC_x%%").
        if (equals == std::string_view::npos || entry.starts_with("BASH_FUNC_")) continue;
        variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
    return variables;
}

std::vector<EnvironmentChange> difference(const Environment& before, const Environment& after,
                                          const std::filesystem::path& prefix) {
    std::vector<EnvironmentChange> changes;
    const auto of_shell = [](const std::string& name) {
        return std::ranges::find(changed_by_shells, std::string_view(name)) != changed_by_shells.end();
    };
    for (const auto& [name, value] : after) {
        const auto old = before.find(name);
        if (of_shell(name) || (old != before.end() && old->second == value)) continue;
        auto change = change_of(name, old == before.end() ? std::string() : old->second, value);
        change.value = with_placeholder(std::move(change.value), prefix.string());
        changes.push_back(std::move(change));
    }
    for (const auto& [name, value] : before)
        if (!after.contains(name) && !of_shell(name))
            changes.push_back({EnvironmentChange::Kind::unset, name, {}});
    return changes;
}

Result<Outcome> source_script(const std::filesystem::path& script, const std::filesystem::path& directory,
                              const Environment& environment, const std::function<int()>& in_child) {
    // The script's own output must not mix with the listing.
    const std::string source = script.empty() ? "" : ". \"$1\" >&2 || exit; ";
    return capture(
        {.argv = {"bash", "--noprofile", "--norc", "-c", source + "exec env -0", "bash", script.string()},
         .environment = environment,
         .working_directory = directory,
         .in_child = in_child});
}

Result<std::vector<EnvironmentChange>> record_script(const std::filesystem::path& script,
                                                     const std::filesystem::path& prefix,
                                                     const Environment& environment,
                                                     const std::function<int()>& in_child) {
    auto before = TRY(source_script({}, prefix, environment, in_child));
    auto after = TRY(source_script(script, prefix, environment, in_child));
    if (!after.ok())
        return fail({.what = "the script for --environ failed",
                     .why = "exit code " + std::to_string(after.exit_code) +
                            (after.errors.empty() ? "" : "\n" + tail(after.errors, 12)),
                     .where = script.string(),
                     .hint = "The last command of the script must also succeed."});
    if (after.output.empty())
        return fail({.what = "the script for --environ cannot be recorded",
                     .why = "it ends the shell that sources it",
                     .where = script.string(),
                     .hint = "Replace `exit` with `return` in the script."});
    if (!after.errors.empty()) log::warn("the script for --environ printed:\n" + tail(after.errors, 12));
    return difference(parse_listing(before.output), parse_listing(after.output), prefix);
}

Environment with_changes(const Environment& environment, std::vector<EnvironmentChange> changes,
                         const std::filesystem::path& prefix) {
    std::vector<std::string> assignments;
    for (const auto& [name, value] : environment)
        assignments.push_back(name + "=" + value);
    std::vector<const char*> pointers;
    for (const auto& assignment : assignments)
        pointers.push_back(assignment.c_str());
    pointers.push_back(nullptr);
    launch::Variables variables(pointers.data());
    variables.apply(launch::with_prefix(std::move(changes), prefix.string()));
    Environment changed;
    for (const char* assignment : variables.pointers()) {
        if (assignment == nullptr) break;
        const std::string_view text = assignment;
        const auto equals = text.find('=');
        if (equals != text.npos) changed.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    return changed;
}

} // namespace containerize::environments

#include "launch/launch_plan.h"

#include "core/text.h"
#include "launch/fields.h"
#include "launch/root_key.h"

#include <cstdio>

namespace containerize::launch {

namespace {

const std::string plan_header = "containerize launch plan " + std::to_string(session_format);
constexpr std::string_view footer = "end";
constexpr std::string_view script_tag = "S";
constexpr std::string_view kinds = "supa"; ///< set, unset, prepend, append

void put_changes(std::string& bytes, char list, const std::vector<EnvironmentChange>& changes) {
    for (const auto& change : changes) {
        const char tag[] = {list, kinds[static_cast<std::size_t>(change.kind)]};
        put(bytes, {tag, sizeof tag});
        put(bytes, change.name);
        put(bytes, change.value);
    }
}

} // namespace

std::string session_program_file() {
    return "libexec/containerize-session-" + std::to_string(session_format);
}

std::string to_bytes(const LaunchPlan& plan) {
    std::string bytes;
    put(bytes, plan_header);
    put(bytes, plan.identity);
    put(bytes, plan.prefix);
    put_changes(bytes, 'R', plan.root);
    put_changes(bytes, 'A', plan.activation);
    for (const auto& script : plan.scripts) {
        put(bytes, script_tag);
        put(bytes, script);
    }
    put_changes(bytes, 'E', plan.environment);
    put(bytes, footer);
    return bytes;
}

std::optional<LaunchPlan> plan_from_bytes(std::string_view bytes) {
    const auto next = [&bytes] { return take_until(bytes, '\0'); };
    LaunchPlan plan;
    if (next() != plan_header) return std::nullopt;
    const auto identity = next();
    const auto prefix = next();
    if (!identity || !prefix) return std::nullopt;
    plan.identity = *identity;
    plan.prefix = *prefix;
    for (;;) {
        const auto tag = next();
        if (tag == footer) return plan;
        const auto name = next();
        if (tag == script_tag && name) {
            plan.scripts.emplace_back(*name);
            continue;
        }
        const auto value = next();
        if (!tag || tag->size() != 2 || !name || !value) return std::nullopt;
        const auto kind = kinds.find((*tag)[1]);
        if (kind == std::string_view::npos) return std::nullopt;
        auto& list = (*tag)[0] == 'R' ? plan.root : (*tag)[0] == 'A' ? plan.activation : plan.environment;
        list.push_back({static_cast<EnvironmentChange::Kind>(kind), std::string(*name), std::string(*value)});
    }
}

std::string manifest_identity(const struct stat& manifest) {
    char text[160];
    std::snprintf(text, sizeof text, "%llx:%llx:%llx:%llx.%lx:%llx.%lx",
                  static_cast<unsigned long long>(manifest.st_dev),
                  static_cast<unsigned long long>(manifest.st_ino),
                  static_cast<unsigned long long>(manifest.st_size),
                  static_cast<unsigned long long>(manifest.st_mtim.tv_sec),
                  static_cast<unsigned long>(manifest.st_mtim.tv_nsec),
                  static_cast<unsigned long long>(manifest.st_ctim.tv_sec),
                  static_cast<unsigned long>(manifest.st_ctim.tv_nsec));
    return text;
}

std::string manifest_identity(int directory) {
    struct stat info {};
    return fstatat(directory, manifest_name, &info, 0) == 0 ? manifest_identity(info) : std::string();
}

std::string plan_file_name(std::string_view prefix) {
    // If two prefixes have the same hash, the prefix in the plan tells them apart.
    return "plan-" + short_hash(prefix);
}

} // namespace containerize::launch

#include "manifest/launch_settings.h"

#include "core/text.h"
#include "launch/engine.h"
#include "util/json.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace containerize::manifest {

namespace {

using nlohmann::json;
using When = PrefetchSetting::When;

constexpr unsigned most_requests = 64;

std::optional<std::uint64_t> size_of(std::string_view text) {
    std::uint64_t unit = 1;
    if (text.ends_with('K')) unit = 1U << 10U;
    if (text.ends_with('M')) unit = 1U << 20U;
    if (unit != 1) text.remove_suffix(1);
    const auto number = to_number<std::uint32_t>(text);
    if (!number || *number * unit < smallest_request || *number * unit > largest_request) return std::nullopt;
    return *number * unit;
}

std::optional<When> when_of(std::string_view text) {
    if (text == "auto") return When::automatic;
    if (text == "on") return When::always;
    if (text == "off") return When::never;
    return std::nullopt;
}

[[noreturn]] void refuse(const std::string& why, const json& entry) {
    throw json::other_error::create(501, why, &entry);
}

constexpr const char* kind_names[] = {"set", "unset", "prepend", "append"};

json to_json(const Base& base) {
    if (base.is_host()) return base.reference;
    return {{"reference", base.reference}, {"digest", base.digest},
            {"file", base.file.string()},  {"offset", base.offset},
            {"isolate", base.isolate},     {"environment", manifest::to_json(base.environment)}};
}

Base base_from(const json& entry) {
    if (entry.is_string()) return {};
    Base base{.reference = entry.at("reference").get<std::string>(),
              .digest = entry.at("digest").get<std::string>(),
              .file = entry.at("file").get<std::string>(),
              .offset = to_integer<std::uint64_t>(entry.at("offset")),
              .isolate = entry.at("isolate").get<bool>(),
              .environment = changes_from(entry.at("environment"))};
    if (!base.is_host() && !base.file.is_absolute()) refuse("the base is not an absolute path", entry);
    return base;
}

Bind bind_from(const json& entry) {
    auto bind = parse_bind(entry.get<std::string>());
    if (!bind) refuse(to_string(bind.error()), entry);
    return std::move(*bind);
}

} // namespace

Result<StagePlace> parse_stage_place(std::string_view text) {
    if (text.empty() || text == "auto") return StagePlace::held;
    if (text == "off") return StagePlace::off;
    if (text == "local") return StagePlace::local;
    if (text == "ram") return StagePlace::ram;
    return fail_input("invalid stage setting: '" + std::string(text) + "'", {}, {},
                      "Give auto, local, ram or off.");
}

Result<PrefetchSetting> parse_prefetch(std::string_view text) {
    const auto parts = split(text, ':');
    const auto when = when_of(parts[0]);
    if (when && parts.size() == 1) return PrefetchSetting{.when = *when};
    if (when && parts.size() == 3) {
        const auto size = size_of(parts[1]);
        const auto depth = to_number<unsigned>(parts[2]);
        if (size && depth && *depth >= 1 && *depth <= most_requests)
            return PrefetchSetting{.when = *when, .size = *size, .depth = *depth};
    }
    return fail_input("invalid prefetch setting: '" + std::string(text) + "'", {}, {},
                      "Give auto, on or off. The size (64K to 64M) and number (1 to 64) of requests can "
                      "follow, as in auto:4M:8.");
}

json to_json(const std::vector<launch::EnvironmentChange>& changes) {
    json list = json::array();
    for (const auto& change : changes) {
        json entry = {{"op", kind_names[static_cast<std::size_t>(change.kind)]}, {"name", change.name}};
        if (change.kind != launch::EnvironmentChange::Kind::unset) entry["value"] = change.value;
        list.push_back(std::move(entry));
    }
    return list;
}

std::vector<launch::EnvironmentChange> changes_from(const json& list) {
    std::vector<launch::EnvironmentChange> changes;
    for (const auto& entry : list) {
        launch::EnvironmentChange change;
        const auto op = entry.at("op").get<std::string>();
        const auto* const kind = std::ranges::find(kind_names, op);
        if (kind == std::end(kind_names)) refuse("unknown operation '" + op + "'", entry);
        change.kind = static_cast<launch::EnvironmentChange::Kind>(kind - std::begin(kind_names));
        change.name = entry.at("name").get<std::string>();
        if (change.kind != launch::EnvironmentChange::Kind::unset)
            change.value = entry.at("value").get<std::string>();
        const bool has_nul =
            change.name.find('\0') != std::string::npos || change.value.find('\0') != std::string::npos;
        if (change.name.empty() || change.name.find('=') != std::string::npos || has_nul)
            refuse("invalid variable '" + change.name + "'", entry);
        changes.push_back(std::move(change));
    }
    return changes;
}

json to_json(const LaunchSettings& settings) {
    json binds = json::array();
    for (const auto& bind : settings.binds)
        binds.push_back(to_text(bind));
    return {{"base", to_json(settings.base)},
            {"binds", std::move(binds)},
            {"host_libraries", settings.host_libraries},
            {"gpu", settings.gpu},
            {"engine", settings.engine},
            {"stage", settings.stage},
            {"prefetch", settings.prefetch},
            {"kernel_mount", settings.kernel_mount}};
}

LaunchSettings settings_from(const json& object) {
    const LaunchSettings defaults;
    LaunchSettings settings{.base = base_from(object.at("base")),
                            .host_libraries = object.value("host_libraries", defaults.host_libraries),
                            .gpu = object.value("gpu", defaults.gpu),
                            .engine = object.value("engine", defaults.engine),
                            .stage = object.value("stage", defaults.stage),
                            .prefetch = object.value("prefetch", defaults.prefetch),
                            .kernel_mount = object.value("kernel_mount", defaults.kernel_mount)};
    for (const auto& bind : object.value("binds", json::array()))
        settings.binds.push_back(bind_from(bind));
    if (!std::ranges::all_of(settings.host_libraries, is_library_name))
        refuse("host_libraries contains an invalid library name", object);
    if (!launch::parse_engine(settings.engine)) refuse("unknown engine", object);
    if (!parse_stage_place(settings.stage)) refuse("unknown stage setting", object);
    if (!parse_prefetch(settings.prefetch)) refuse("unknown prefetch setting", object);
    return settings;
}

} // namespace containerize::manifest

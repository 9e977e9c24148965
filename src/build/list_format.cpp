#include "build/list_format.h"

#include "core/printable.h"
#include "core/text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace containerize::build {

namespace {

using spec::SpecKind;

struct NamedFormat {
    SpecKind kind;
    std::string_view name;
};

constexpr auto named = std::to_array<NamedFormat>({
    {SpecKind::lock, "own"},
    {SpecKind::pylock, "pylock"},
    {SpecKind::conda_explicit, "explicit"},
    {SpecKind::conda_lock, "conda-lock"},
    {SpecKind::pixi_lock, "pixi"},
    {SpecKind::environment_yaml, "environment.yml"},
    {SpecKind::requirements, "requirements.txt"},
});

constexpr auto of_conda_lock = std::to_array<SpecKind>(
    {SpecKind::lock, SpecKind::conda_explicit, SpecKind::conda_lock, SpecKind::pixi_lock});
constexpr auto of_conda_export =
    std::to_array<SpecKind>({SpecKind::lock, SpecKind::conda_explicit, SpecKind::conda_lock,
                             SpecKind::pixi_lock, SpecKind::environment_yaml});
constexpr auto of_pip_lock = std::to_array<SpecKind>({SpecKind::pylock});
constexpr auto of_pip_export = std::to_array<SpecKind>({SpecKind::pylock, SpecKind::requirements});

bool is_among(SpecKind kind, ListFormats formats) {
    return std::ranges::find(formats, kind) != formats.end();
}

/// The format that tools give a file of this name. A .txt may be of either of two.
std::optional<SpecKind> format_of_name(const std::string& name, ListFormats possible) {
    if (name.ends_with("conda-lock.yml") || name.ends_with("conda-lock.yaml")) return SpecKind::conda_lock;
    if (name == "pixi.lock") return SpecKind::pixi_lock;
    if (name.starts_with("pylock.") && name.ends_with(".toml")) return SpecKind::pylock;
    if (name == "environment.yml" || name == "environment.yaml") return SpecKind::environment_yaml;
    if (name == "requirements.txt") return SpecKind::requirements;
    if (!name.ends_with(".txt")) return std::nullopt;
    for (const auto kind : {SpecKind::conda_explicit, SpecKind::requirements})
        if (is_among(kind, possible)) return kind;
    return std::nullopt;
}

/// Whether files of this name are usually of a format that the default is not.
bool is_misleading(const std::string& name) {
    return name.ends_with(".yml") || name.ends_with(".yaml") || name.ends_with(".txt");
}

} // namespace

ListFormats formats_of_conda_lock() {
    return of_conda_lock;
}
ListFormats formats_of_pip_lock() {
    return of_pip_lock;
}
ListFormats formats_of_conda_export() {
    return of_conda_export;
}
ListFormats formats_of_pip_export() {
    return of_pip_export;
}

std::vector<std::string> names_of(ListFormats formats) {
    std::vector<std::string> names;
    for (const auto kind : formats)
        names.emplace_back(std::ranges::find(named, kind, &NamedFormat::kind)->name);
    return names;
}

Result<SpecKind> choose_format(const WantedFormat& wanted, ListFormats possible, const std::string& what,
                               const std::string& where) {
    const auto hint = "Possible formats: " + joined(names_of(possible), ", ") + ".";
    if (!wanted.name.empty()) {
        const auto found = std::ranges::find(named, wanted.name, &NamedFormat::name);
        if (found == named.end())
            return fail_input("unknown format '" + printable_line(wanted.name) + "'", {}, {}, hint);
        if (is_among(found->kind, possible)) return found->kind;
        return fail_input(what + " cannot be written in the format " + wanted.name, {}, where, hint);
    }
    const auto name = wanted.output.filename().string();
    const auto told = format_of_name(name, possible);
    if (!told && is_misleading(name))
        return fail_input("this name does not tell the format", {}, printable_line(name),
                          "Give --format: " + joined(names_of(possible), ", ") + ".");
    const auto kind = told.value_or(possible.front());
    if (is_among(kind, possible)) return kind;
    return fail_input(what + " cannot be written in the format that the name of " + printable_line(name) +
                          " means",
                      describe(kind), where, hint + " --format chooses one of them for a file of any name.");
}

} // namespace containerize::build

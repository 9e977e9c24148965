#include "session/logind.h"

#include "core/entries.h"
#include "core/text.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace containerize::session {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view setting = "KillUserProcesses";
/// Directories with its configuration, the highest priority first.
constexpr std::array places = {"etc", "run", "usr/local/lib", "usr/lib", "lib"};

bool is_yes(std::string_view value) {
    constexpr std::array<std::string_view, 5> words = {"yes", "1", "true", "on", "y"};
    return std::ranges::find(words, value) != words.end();
}

std::optional<bool> value_in(const fs::path& path, std::string_view before) {
    const auto name = std::string(before).append(setting);
    std::optional<bool> value;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);)
        if (const auto equals = line.find('=');
            equals != line.npos && trimmed(line.substr(0, equals)) == name)
            value = is_yes(trimmed(std::string_view(line).substr(equals + 1)));
    return value;
}

} // namespace

bool logins_end_their_processes(const fs::path& root) {
    fs::path settings;
    std::map<std::string, fs::path> drop_ins;
    for (const char* place : places) {
        const auto here = root / place / "systemd";
        std::error_code failed;
        if (settings.empty() && fs::exists(here / "logind.conf", failed)) settings = here / "logind.conf";
        for (const auto& name : names_in(here / "logind.conf.d"))
            if (name.ends_with(".conf")) drop_ins.emplace(name, here / "logind.conf.d" / name);
    }
    // The packaged file lists all settings as comments, with the distribution's defaults.
    bool ends = value_in(settings, "#").value_or(true);
    ends = value_in(settings, "").value_or(ends);
    for (const auto& [name, path] : drop_ins)
        ends = value_in(path, "").value_or(ends);
    return ends;
}

} // namespace containerize::session

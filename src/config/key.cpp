#include "config/key.h"

#include "config/variables.h"
#include "image/writer.h"
#include "pip/installer.h"
#include "runtime/engine.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

namespace containerize::config {

namespace {

Status check_directory(const std::string& value) {
    if (!value.starts_with('/') && !value.starts_with('$') && value != "~" && !value.starts_with("~/"))
        return fail_input("not an absolute path: '" + value + "'", {}, {},
                          "Begin it with '/', '~/' or a variable.");
    auto expanded = expand(value, [](const std::string&) { return std::string(); });
    if (!expanded) return fail(std::move(expanded.error()));
    return {};
}

Status check_channel(const std::string& value) {
    if (!value.empty() && value.find_first_of(" \t\n") == std::string::npos && !value.starts_with('.'))
        return {};
    return fail_input("not a channel: '" + value + "'", {}, {}, "Give a name, a URL or an absolute path.");
}

Status check_flag(const std::string& value) {
    if (parse_flag(value)) return {};
    return fail_input("neither true nor false: '" + value + "'");
}

Status check_base(const std::string& value) {
    if (value == "host") return {};
    return fail_input("not a base that this version knows: '" + value + "'", {}, {},
                      "Write host, or leave it out.");
}

Status check_engine(const std::string& value) {
    auto parsed = runtime::parse_engine(value);
    if (!parsed) return fail(std::move(parsed.error()));
    return {};
}

Status check_compression(const std::string& value) {
    auto parsed = image::parse_compression(value);
    if (!parsed) return fail(std::move(parsed.error()));
    return {};
}

Status check_block_size(const std::string& value) {
    auto parsed = image::parse_block_size(value);
    if (!parsed) return fail(std::move(parsed.error()));
    return {};
}

Status check_number(const std::string& value) {
    unsigned number = 0;
    const char* end = value.data() + value.size();
    const auto [stop, problem] = std::from_chars(value.data(), end, number);
    if (problem == std::errc() && stop == end && number >= 1 && number <= 1024) return {};
    return fail_input("not a number from 1 to 1024: '" + value + "'");
}

Status check_installer(const std::string& value) {
    auto parsed = pip::parse_installer(value);
    if (!parsed) return fail(std::move(parsed.error()));
    return {};
}

Status check_wrapper_path(const std::string& value) {
    const auto path = std::filesystem::path(value).lexically_normal();
    if (!path.empty() && path.is_relative() && path != "." && *path.begin() != "..") return {};
    return fail_input("not a directory below an installation: '" + value + "'", {}, {},
                      "Give it relative to the prefix, such as opt/tool/bin.");
}

// SRC[:DST[:ro]]
Status check_bind(const std::string& value) {
    const auto first = value.find(':');
    const auto second = first == std::string::npos ? first : value.find(':', first + 1);
    const auto source = value.substr(0, first);
    const auto target = first == std::string::npos ? source : value.substr(first + 1, second - first - 1);
    const bool marked = second == std::string::npos || value.substr(second + 1) == "ro";
    if (source.starts_with('/') && target.starts_with('/') && marked) return {};
    return fail_input("not a directory to be bound: '" + value + "'", {}, {},
                      "Write SRC, SRC:DST or SRC:DST:ro, with absolute paths.");
}

Status check_variable(const std::string& value) {
    if (value.find('\0') == std::string::npos) return {};
    return fail_input("no value of a variable: it has a NUL character");
}

Status check_umask(const std::string& value) {
    if (parse_umask(value)) return {};
    return fail_input("not a umask: '" + value + "'", {}, {},
                      "Give it in octal, with nothing taken from the owner, such as \"027\".");
}

} // namespace

const std::array<KeyInfo, number_of_keys>& all_keys() {
    static const std::array<KeyInfo, number_of_keys> keys = {{
        {Key::prefix, "prefix", Kind::directory, "", check_directory},
        {Key::channels, "channels", Kind::list, "", check_channel},
        {Key::conda_config, "conda_config", Kind::flag, "true", check_flag},
        {Key::cache, "cache", Kind::directory, "", check_directory},
        {Key::staging, "staging", Kind::directory, "", check_directory},
        {Key::base, "base", Kind::text, "host", check_base},
        {Key::compression, "compression", Kind::text, "zstd:3", check_compression},
        {Key::block_size, "block_size", Kind::text, "128K", check_block_size},
        {Key::jobs, "jobs", Kind::number, "", check_number},
        {Key::max_jobs, "max_jobs", Kind::number, "", check_number},
        {Key::installer, "installer", Kind::text, "auto", check_installer},
        {Key::wrapper_paths, "wrapper_paths", Kind::list, "", check_wrapper_path},
        {Key::binds, "binds", Kind::list, "", check_bind},
        {Key::engine, "engine", Kind::text, "auto", check_engine},
        {Key::environment, "environment", Kind::map, "", check_variable},
        {Key::umask, "umask", Kind::text, "", check_umask},
    }};
    return keys;
}

const KeyInfo& info(Key key) {
    return all_keys().at(static_cast<std::size_t>(key));
}

const KeyInfo* find_key(std::string_view name) {
    const auto found = std::ranges::find(all_keys(), name, &KeyInfo::name);
    return found == all_keys().end() ? nullptr : &*found;
}

std::optional<bool> parse_flag(std::string_view text) {
    std::string word(text);
    std::ranges::transform(word, word.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (word == "true" || word == "yes" || word == "on") return true;
    if (word == "false" || word == "no" || word == "off") return false;
    return std::nullopt;
}

std::optional<unsigned> parse_umask(std::string_view text) {
    constexpr int octal = 8;
    unsigned bits = 0;
    const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), bits, octal);
    if (problem != std::errc() || stop != text.data() + text.size() || bits > 077) return std::nullopt;
    return bits;
}

} // namespace containerize::config

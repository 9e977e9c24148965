#include "config/key.h"

#include "config/expand.h"
#include "core/text.h"
#include "core/url.h"
#include "image/writer.h"
#include "launch/engine.h"
#include "manifest/bind.h"
#include "manifest/launch_settings.h"
#include "pip/installer.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace containerize::config {

namespace {

Status check_directory(const std::string& value) {
    if (!value.starts_with('/') && !value.starts_with('$') && value != "~" && !value.starts_with("~/"))
        return fail_input("not an absolute path: '" + value + "'", {}, {},
                          "Start it with '/', '~/' or a variable.");
    auto expanded = expand(value, [](const std::string&) { return std::string(); });
    if (!expanded) return fail(std::move(expanded.error()));
    return {};
}

Status check_channel(const std::string& value) {
    if (!value.empty() && value.find_first_of(" \t\n") == std::string::npos && !value.starts_with('.'))
        return {};
    return fail_input("invalid channel: '" + value + "'", {}, {}, "Give a name, a URL or an absolute path.");
}

Status check_flag(const std::string& value) {
    if (parse_flag(value)) return {};
    return fail_input("not true or false: '" + value + "'");
}

Status check_base(const std::string& value) {
    if (!value.empty() && value.find_first_of(" \t\n") == std::string::npos) return {};
    return fail_input("invalid base: '" + value + "'", {}, {},
                      "Give host, an image such as docker://debian:12, or a file.");
}

Status check_engine(const std::string& value) {
    auto parsed = launch::parse_engine(value);
    if (!parsed) return fail(std::move(parsed.error()));
    return {};
}

Status check_prefetch(const std::string& value) {
    auto parsed = manifest::parse_prefetch(value);
    if (!parsed) return fail(std::move(parsed.error()));
    return {};
}

Status check_stage(const std::string& value) {
    auto parsed = manifest::parse_stage_place(value);
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
    if (const auto number = to_number<unsigned>(value).value_or(0); number >= 1 && number <= 1024) return {};
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
    return fail_input("not a path below the prefix: '" + value + "'", {}, {},
                      "Give it relative to the prefix, such as opt/tool/bin.");
}

Status check_bind(const std::string& value) {
    auto bind = manifest::parse_bind(value);
    return bind ? Status() : fail(std::move(bind.error()));
}

// NAME=URL
Status check_registry(const std::string& value) {
    const auto equals = value.find('=');
    const auto url = equals == std::string::npos ? "" : value.substr(equals + 1);
    if (equals != 0 && equals != std::string::npos &&
        value.substr(0, equals).find('/') == std::string::npos &&
        (url.starts_with("https://") || url.starts_with("http://")) && !url_host(url).empty() &&
        url.find_first_of(" \t?#@") == std::string::npos)
        return {};
    return fail_input("invalid registry mirror: '" + without_credentials(value) + "'", {}, {},
                      "Give NAME=URL, such as docker.io=https://mirror.example.org.");
}

Status check_host_profile(const std::string& value) {
    const bool is_name = !value.empty() && value.find_first_not_of(
                                               "abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string::npos;
    if (is_name || value.starts_with('/')) return {};
    return fail_input("invalid host profile: '" + value + "'", {}, {},
                      "Give a name, such as slurm, or the absolute path of a file.");
}

Status check_variable(const std::string& value) {
    if (value.find('\0') == std::string::npos) return {};
    return fail_input("the variable's value contains a NUL character");
}

Status check_umask(const std::string& value) {
    if (parse_umask(value)) return {};
    return fail_input("invalid umask: '" + value + "'", {}, {},
                      "Give an octal mask that keeps the owner's permissions, such as \"027\".");
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
        {Key::auto_base, "auto_base", Kind::text, "", check_base},
        {Key::bases, "bases", Kind::directory, "", check_directory},
        {Key::base_stores, "base_stores", Kind::list, "", check_directory},
        {Key::base_limit, "base_limit", Kind::number, "256", check_number},
        {Key::registries, "registries", Kind::list, "", check_registry},
        {Key::compression, "compression", Kind::text, "zstd:3", check_compression},
        {Key::block_size, "block_size", Kind::text, "128K", check_block_size},
        {Key::jobs, "jobs", Kind::number, "", check_number},
        {Key::max_jobs, "max_jobs", Kind::number, "", check_number},
        {Key::installer, "installer", Kind::text, "auto", check_installer},
        {Key::wrapper_paths, "wrapper_paths", Kind::list, "", check_wrapper_path},
        {Key::binds, "binds", Kind::list, "", check_bind},
        {Key::host_profiles, "host_profiles", Kind::list, "", check_host_profile},
        {Key::engine, "engine", Kind::text, "auto", check_engine},
        {Key::prefetch, "prefetch", Kind::text, "auto", check_prefetch},
        {Key::stage, "stage", Kind::text, "auto", check_stage},
        {Key::kernel_mount, "kernel_mount", Kind::flag, "false", check_flag},
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
    const auto bits = to_number<unsigned>(text, octal);
    return bits && *bits <= 077 ? bits : std::nullopt;
}

} // namespace containerize::config

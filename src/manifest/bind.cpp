#include "manifest/bind.h"

#include "core/text.h"

#include <algorithm>
#include <array>

namespace containerize::manifest {

namespace {

constexpr std::array<std::string_view, 3> options = {"ro", "rw", "required"};

bool is_option(std::string_view word) {
    return std::ranges::find(options, word) != options.end();
}

std::unexpected<Error> bad_bind(std::string_view text, std::string why) {
    return fail_input("invalid bind: '" + std::string(text) + "'", std::move(why), {},
                      "Write SRC[:DST[:ro]] with absolute paths, such as /data:/mnt/data:ro.");
}

/// Whether `path` is absolute and has no "..", which could lead out of the root.
bool is_plain_path(std::string_view path) {
    if (!path.starts_with('/')) return false;
    const auto parts = split(path.substr(1), '/');
    return std::ranges::none_of(parts, [](std::string_view part) { return part == ".."; });
}

} // namespace

Result<Bind> parse_bind(std::string_view text) {
    const auto parts = split(text, ':');
    if (parts.size() > 3) return bad_bind(text, "it has more than three parts");
    Bind bind;
    bind.source = parts[0];
    bind.target = parts.size() > 1 && !parts[1].empty() ? parts[1] : parts[0];
    while (bind.target.size() > 1 && bind.target.ends_with('/'))
        bind.target.pop_back();
    if (!is_plain_path(bind.source))
        return bad_bind(text, "the source must be an absolute path without '..'");
    if (!is_plain_path(bind.target))
        return bad_bind(text, "the target must be an absolute path without '..'");
    if (bind.target == "/") return bad_bind(text, "the target must not be the root directory");
    if (parts.size() < 3) return bind;
    for (const auto option : split(parts[2], ',')) {
        if (!is_option(option)) return bad_bind(text, "unknown option '" + std::string(option) + "'");
        if (option == "required")
            bind.required = true;
        else
            bind.read_only = option == "ro";
    }
    return bind;
}

Result<std::vector<Bind>> parse_binds(std::string_view text) {
    std::vector<std::string> words;
    for (const auto word : split(text, ',')) {
        if (word.empty()) continue;
        if (is_option(word) && !words.empty())
            words.back().append(",").append(word);
        else
            words.emplace_back(word);
    }
    std::vector<Bind> binds;
    for (const auto& word : words) {
        auto bind = TRY(parse_bind(word));
        binds.push_back(std::move(bind));
    }
    return binds;
}

std::string to_text(const Bind& bind) {
    std::string text = bind.source + ":" + bind.target;
    text += bind.read_only ? ":ro" : ":rw";
    if (bind.required) text += ",required";
    return text;
}

bool is_library_name(std::string_view name) {
    return name.starts_with("lib") && name.find(".so") != name.npos &&
           name.find_first_of("/ \t\n") == name.npos && name.size() < 200;
}

} // namespace containerize::manifest

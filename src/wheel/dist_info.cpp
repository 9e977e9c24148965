#include "wheel/dist_info.h"

#include "core/filesystem.h"
#include "core/printable.h"
#include "core/text.h"
#include "util/base64.h"
#include "util/user_text.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <ranges>
#include <utility>

namespace containerize::wheel {

namespace {

/// The major version of the wheel format that we know.
constexpr unsigned known_version = 1;

constexpr std::pair<std::string_view, Scheme> schemes_in_data[] = {{"purelib", Scheme::site_packages},
                                                                   {"platlib", Scheme::site_packages},
                                                                   {"scripts", Scheme::scripts},
                                                                   {"data", Scheme::data},
                                                                   {"headers", Scheme::headers}};

/// Takes a line that ends with "\n", "\r\n" or "\r", without these.
std::string_view take_line(std::string_view& text) {
    const auto line = text.substr(0, text.find_first_of("\r\n"));
    text.remove_prefix(line.size());
    text.remove_prefix(text.starts_with("\r\n") ? 2 : text.empty() ? 0 : 1);
    return line;
}

/// The value of the first header of this name, in lower case; nullopt if there is none.
std::optional<std::string> header(std::string_view text, std::string_view name) {
    while (!text.empty()) {
        const auto line = take_line(text);
        if (line.empty()) break; // the description follows
        const auto colon = line.find(':');
        if (colon == name.size() && lower(line.substr(0, colon)) == name)
            return std::string(trimmed(line.substr(colon + 1)));
    }
    return std::nullopt;
}

std::unexpected<Error> malformed(const char* file, std::size_t line, std::string why) {
    return fail({.what = std::string(file) + " in it is malformed",
                 .why = "line " + std::to_string(line) + " " + std::move(why)});
}

/// Takes one field of a row of CSV; nullopt if a quote is misplaced or missing.
std::optional<std::string> take_field(std::string_view& text) {
    if (!text.starts_with('"')) {
        const auto field = text.substr(0, text.find_first_of(",\r\n"));
        text.remove_prefix(field.size());
        return std::string(field);
    }
    std::string field;
    for (;;) {
        const auto end = text.find('"', 1);
        if (end == text.npos) return std::nullopt;
        field += text.substr(1, end - 1);
        text.remove_prefix(end + 1);
        if (!text.starts_with('"')) break;
        field += '"';
    }
    if (!text.empty() && text.find_first_of(",\r\n") != 0) return std::nullopt;
    return field;
}

std::string csv_field(const std::string& field) {
    if (field.find_first_of(",\"\r\n") == field.npos) return field;
    auto quoted = field;
    replace_all(quoted, "\"", "\"\"");
    return '"' + quoted + '"';
}

/// The dotted words at the start of `text`: "pkg.mod" of "pkg.mod:run()". Letters outside ASCII are left to
/// Python.
std::string_view take_dotted_name(std::string_view& text) {
    const auto is_of_word = [&](std::size_t at) {
        const auto c = at < text.size() ? static_cast<unsigned char>(text[at]) : '\0';
        return std::isalnum(c) != 0 || c == '_' || c >= 0x80;
    };
    std::size_t size = 0;
    while (is_of_word(size) || (size > 0 && text.substr(size).starts_with('.') && is_of_word(size + 1)))
        ++size;
    const auto name = text.substr(0, size);
    text.remove_prefix(size);
    return name;
}

/// As pip reads it: whatever follows the names, such as extras, parentheses or a comment, has no meaning.
/// Nullopt if it is not MODULE:FUNCTION.
std::optional<EntryPoint> function_in(std::string_view text) {
    const auto module = take_dotted_name(text);
    text = trimmed(text);
    if (module.empty() || !text.starts_with(':')) return std::nullopt;
    text = trimmed(text.substr(1));
    const auto function = take_dotted_name(text);
    if (function.empty() || text.starts_with(':')) return std::nullopt;
    return EntryPoint{.name = {}, .module = std::string(module), .function = std::string(function)};
}

bool is_command_name(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
           std::ranges::none_of(name, [](unsigned char c) { return c < ' ' || c == '/' || c == 0x7f; });
}

} // namespace

std::string_view directory_of(Scheme scheme) {
    switch (scheme) {
    case Scheme::site_packages:
        return "site-packages";
    case Scheme::scripts:
        return "scripts";
    case Scheme::data:
        return "data";
    case Scheme::headers:
        break;
    }
    return "headers";
}

Result<Place> place_of(std::string_view name) {
    const auto refuse = [](std::string why) { return fail({.what = std::move(why)}); };
    // Where backslashes separate directories, it must not lead elsewhere either.
    std::string with_slashes(name);
    std::ranges::replace(with_slashes, '\\', '/');
    auto path = clean_path(name);
    if (path.empty() || clean_path(with_slashes).empty())
        return refuse("points outside the directory of the installation, or is too long");
    if (!is_utf8(path)) return refuse("is not UTF-8");
    std::string_view rest = path;
    const auto first = take_until(rest, '/').value_or(rest);
    if (!first.ends_with(".data")) return Place{.scheme = Scheme::site_packages, .path = std::move(path)};
    const auto key = take_until(rest, '/');
    if (!key) return refuse("is not in a directory for a kind of files");
    const auto* const found =
        std::ranges::find(schemes_in_data, *key, &std::pair<std::string_view, Scheme>::first);
    if (found == std::ranges::end(schemes_in_data))
        return refuse("is in a directory for an unknown kind of files");
    return Place{.scheme = found->second, .path = std::string(rest)};
}

Metadata parse_metadata(std::string_view text) {
    return {.name = header(text, "name").value_or(""), .version = header(text, "version").value_or("")};
}

Status check_wheel_version(std::string_view text) {
    const auto version = header(text, "wheel-version");
    if (!version) return fail({.what = "WHEEL in it has no Wheel-Version"});
    const auto major = to_number<unsigned>(std::string_view(*version).substr(0, version->find('.')));
    if (major && *major <= known_version) return {};
    return fail(
        {.what = "it has version '" + printable_line(version->substr(0, 100)) + "' of the wheel format",
         .why = "only versions 1.x are known",
         .hint = "Request an older version of the package, or a newer containerize."});
}

Result<std::vector<RecordRow>> parse_record(std::string_view text) {
    if (!is_utf8(text)) return fail({.what = "RECORD in it is malformed", .why = "it is not UTF-8"});
    std::vector<RecordRow> rows;
    const auto whole = text;
    while (!text.empty()) {
        const auto start = text;
        std::vector<std::string> fields;
        do {
            if (!fields.empty()) text.remove_prefix(1);
            auto field = take_field(text);
            if (!field) {
                const auto before = whole.substr(0, whole.size() - start.size());
                return malformed("RECORD", 1 + static_cast<std::size_t>(std::ranges::count(before, '\n')),
                                 "has a quote that is misplaced, or not closed");
            }
            fields.push_back(std::move(*field));
        } while (text.starts_with(','));
        take_line(text);                                     // nothing but its end is left
        if (fields == std::vector<std::string>(1)) continue; // an empty line
        fields.resize(3);
        rows.push_back(
            {.path = std::move(fields[0]), .digest = std::move(fields[1]), .size = std::move(fields[2])});
    }
    return rows;
}

std::string record_text(const std::vector<RecordRow>& rows) {
    std::string text;
    for (const auto& row : rows)
        text += csv_field(row.path) + "," + csv_field(row.digest) + "," + csv_field(row.size) + "\r\n";
    return text;
}

std::string record_digest(std::string_view sha256) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < sha256.size(); i += 2)
        bytes += static_cast<char>(to_number<unsigned char>(sha256.substr(i, 2), 16).value_or(0));
    auto encoded = base64(bytes);
    std::ranges::replace(encoded, '+', '-');
    std::ranges::replace(encoded, '/', '_');
    encoded.resize(std::min(encoded.find('='), encoded.size()));
    return "sha256=" + encoded;
}

Result<std::vector<EntryPoint>> parse_entry_points(std::string_view text) {
    if (!is_utf8(text))
        return fail({.what = "entry_points.txt in it is malformed", .why = "it is not UTF-8"});
    using Commands = std::map<std::string, EntryPoint>; // by name
    Commands console, gui;
    Commands* commands = nullptr; // those of this section
    std::size_t number = 0;
    while (!text.empty()) {
        ++number;
        auto line = trimmed(take_line(text));
        if (line.empty() || line.front() == '#' || line.front() == ';') continue;
        if (line.front() == '[' && line.back() == ']') {
            const auto section = line.substr(1, line.size() - 2);
            commands = section == "console_scripts" ? &console : section == "gui_scripts" ? &gui : nullptr;
            continue;
        }
        if (commands == nullptr) continue;
        const auto name = take_until(line, '=');
        if (!name) return malformed("entry_points.txt", number, "is not NAME = MODULE:FUNCTION");
        auto found = function_in(trimmed(line));
        if (!found) return malformed("entry_points.txt", number, "is not NAME = MODULE:FUNCTION");
        found->name = trimmed(*name);
        if (!is_command_name(found->name))
            return malformed("entry_points.txt", number, "has a name that no command can have");
        commands->insert_or_assign(found->name, *found);
    }
    gui.merge(console);
    auto all = std::views::values(gui);
    return std::vector<EntryPoint>(all.begin(), all.end());
}

} // namespace containerize::wheel

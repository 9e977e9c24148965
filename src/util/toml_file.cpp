#include "util/toml_file.h"

#include "core/filesystem.h"
#include "core/printable.h"
#include "util/text_limits.h"
#include "util/user_text.h"

#include <algorithm>
#include <utility>

namespace containerize {

namespace {

/// toml++ takes about 150 bytes for each value.
constexpr std::size_t most_values = 1'000'000;
/// Each part of a dotted key nests a table in another, without the limit that toml++ has for brackets.
constexpr std::size_t most_dots = 200;

/// An upper bound for the values in the text.
std::size_t most_values_in(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return c == ',' || c == '\n' || c == '{' || c == '['; }));
}

bool has_deep_key(std::string_view text) {
    std::size_t dots = 0;
    for (const char c : text) {
        if (c == '.') {
            if (++dots > most_dots) return true;
        } else if (std::string_view("=,{}[]\n").find(c) != std::string_view::npos) {
            dots = 0;
        }
    }
    return false;
}

} // namespace

Result<TomlFile> TomlFile::read(const fs::path& file) {
    const auto content = TRY(read_input_file(file, largest_text));
    const auto text = TRY(decode(content, file));
    return parse(text, file);
}

Result<TomlFile> TomlFile::parse(std::string_view text, const fs::path& file, std::size_t lines_before) {
    if (most_values_in(text) > most_values) return too_large(file.string(), "1,000,000 values");
    if (has_deep_key(text)) return too_large(file.string(), std::to_string(most_dots) + " dots in a key");
    TomlFile toml;
    toml.file_ = file;
    toml.lines_before_ = lines_before;
    auto parsed = toml::parse(text);
    if (!parsed) {
        const auto& problem = parsed.error();
        return fail_input("invalid TOML", printable_line(problem.description()),
                          file.string() + ":" + std::to_string(problem.source().begin.line + lines_before));
    }
    toml.root_ = std::move(parsed).table();
    return toml;
}

std::string TomlFile::where(const toml::node& node) const {
    const auto line = node.source().begin.line;
    return line == 0 ? file_.string() : file_.string() + ":" + std::to_string(line + lines_before_);
}

std::unexpected<Error> TomlFile::refuse(const toml::node& node, std::string what, std::string why,
                                        std::string hint) const {
    return fail_input(std::move(what), std::move(why), where(node), std::move(hint));
}

namespace {

std::string must_be(std::string_view key, std::string_view type) {
    return "`" + printable_line(key) + "` must be " + std::string(type);
}

} // namespace

Result<std::string> TomlFile::text(const toml::table& table, std::string_view key) const {
    const auto* node = table.get(key);
    if (node == nullptr) return std::string();
    const auto* value = node->as_string();
    if (value == nullptr) return refuse(*node, must_be(key, "a string"));
    return value->get();
}

Result<std::vector<std::string>> TomlFile::texts(const toml::table& table, std::string_view key) const {
    std::vector<std::string> texts;
    if (const auto* node = table.get(key))
        for (const auto* value : TRY(strings(*node, key)))
            texts.push_back(value->get());
    return texts;
}

Result<std::vector<const toml::value<std::string>*>> TomlFile::strings(const toml::node& value,
                                                                       std::string_view name) const {
    const auto* array = value.as_array();
    if (array == nullptr) return refuse(value, must_be(name, "a list of strings"));
    std::vector<const toml::value<std::string>*> strings;
    for (const auto& one : *array) {
        const auto* string = one.as_string();
        if (string == nullptr) return refuse(one, must_be(name, "a list of strings"));
        strings.push_back(string);
    }
    return strings;
}

Result<std::vector<std::string>> TomlFile::keys(const toml::table& table, std::string_view key) const {
    std::vector<std::string> keys;
    if (const auto* value = TRY(this->table(table, key)))
        for (const auto& [name, ignored] : *value)
            keys.emplace_back(name.str());
    return keys;
}

Result<const toml::table*> TomlFile::table(const toml::table& table, std::string_view key) const {
    const auto* node = table.get(key);
    if (node == nullptr) return nullptr;
    const auto* value = node->as_table();
    if (value == nullptr) return refuse(*node, must_be(key, "a table"));
    return value;
}

Result<std::vector<const toml::table*>> TomlFile::tables(const toml::table& table,
                                                         std::string_view key) const {
    const auto* node = table.get(key);
    if (node == nullptr) return std::vector<const toml::table*>();
    return tables(*node, key);
}

Result<std::vector<const toml::table*>> TomlFile::tables(const toml::node& value,
                                                         std::string_view name) const {
    const auto* array = value.as_array();
    if (array == nullptr) return refuse(value, must_be(name, "a list of tables"));
    std::vector<const toml::table*> tables;
    for (const auto& one : *array) {
        const auto* table = one.as_table();
        if (table == nullptr) return refuse(one, must_be(name, "a list of tables"));
        tables.push_back(table);
    }
    return tables;
}

} // namespace containerize

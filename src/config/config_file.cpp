#include "config/config_file.h"

#include "core/text.h"
#include "core/variables.h"
#include "util/similar_names.h"
#include "util/yaml_file.h"

#include <algorithm>
#include <array>
#include <utility>

namespace containerize::config {

namespace {

// In order of increasing precedence.
constexpr std::array<std::pair<std::string_view, Section>, 4> sections = {{{"defaults", Section::defaults},
                                                                           {"prepends", Section::prepends},
                                                                           {"appends", Section::appends},
                                                                           {"force", Section::force}}};

std::string did_you_mean(const std::vector<std::string>& names, const std::string& name) {
    const auto similar = similar_names(names, name);
    return similar.empty() ? "" : "Did you mean " + joined(similar, " or ") + "?";
}

class FileReader {
public:
    explicit FileReader(const YamlFile& yaml) : yaml_(yaml) {}

    FileContent read() {
        const auto& root = yaml_.root();
        if (!root.IsDefined() || root.IsNull()) return {};
        if (!root.IsMap()) {
            refuse(root, "a configuration must be a mapping with sections such as `defaults:`");
            return std::move(content_);
        }
        each(root, [&](const YAML::Node& key, const YAML::Node& value) { section(key, value); });
        std::ranges::stable_sort(content_.statements, {}, &Given::section);
        return std::move(content_);
    }

private:
    void refuse(const YAML::Node& node, std::string what, std::string hint = {}) {
        content_.mistakes.push_back(yaml_.refuse(node, std::move(what), std::move(hint)).error());
    }

    // Continues after mistakes, since all of them are to be reported.
    void each(const YAML::Node& mapping,
              const std::function<void(const YAML::Node& key, const YAML::Node& value)>& visit) {
        auto done = yaml_.each(mapping, [&](const YAML::Node& key, const YAML::Node& value) -> Status {
            visit(key, value);
            return {};
        });
        if (!done) content_.mistakes.push_back(std::move(done.error()));
    }

    // Errors about a key refer to its line: the value may start some lines below.
    void section(const YAML::Node& node, const YAML::Node& value) {
        const auto& name = node.Scalar();
        const auto found = std::ranges::find(sections, name, [](const auto& one) { return one.first; });
        if (found == sections.end()) {
            std::vector<std::string> names;
            for (const auto& one : sections)
                names.emplace_back(one.first);
            const bool is_key = find_key(name) != nullptr;
            refuse(node, "there is no section `" + name + ":`",
                   is_key ? "It is a setting. Put it below `defaults:` or `force:`."
                          : did_you_mean(names, name));
        } else if (value.IsMap()) {
            each(value, [&](const YAML::Node& key, const YAML::Node& inner) {
                statement(found->second, key, inner);
            });
        } else if (!value.IsNull()) {
            refuse(value, "`" + name + ":` must be a mapping", "Write `key: value` lines below it.");
        }
    }

    void statement(Section section, const YAML::Node& node, const YAML::Node& value) {
        const auto& name = node.Scalar();
        const auto* key = find_key(name);
        if (key == nullptr) {
            std::vector<std::string> names;
            for (const auto& one : all_keys())
                names.emplace_back(one.name);
            return refuse(node, "there is no setting `" + name + ":`", did_you_mean(names, name));
        }
        const bool extends = section == Section::prepends || section == Section::appends;
        if (extends && key->kind != Kind::list)
            return refuse(node, "`" + name + ":` is not a list, so it cannot be extended",
                          "Put it below `defaults:` or `force:`.");
        if (section == Section::force && key->key == Key::prefix)
            return refuse(node, "`prefix:` cannot be forced", "Put it below `defaults:`.");
        Given given{.section = section, .key = key->key, .where = yaml_.where(node)};
        if (value.IsNull())
            return refuse(node, "`" + name + ":` has no value", "Give a value, or remove the key.");
        if (key->kind == Kind::list)
            read_list(*key, value, given);
        else if (key->kind == Kind::map)
            read_map(*key, value, given);
        else
            read_value(*key, value, given, {});
        content_.statements.push_back(std::move(given));
    }

    void read_value(const KeyInfo& key, const YAML::Node& value, Given& given, const std::string& name) {
        const std::string title = name.empty() ? std::string(key.name) : name;
        if (!value.IsScalar()) return refuse(value, "`" + title + ":` must be a single value");
        std::string text = value.Scalar();
        if (auto good = key.check(text); !good)
            return refuse(value, "`" + title + "`: " + good.error().what, good.error().hint);
        if (key.kind == Kind::flag) text = parse_flag(text).value_or(false) ? "true" : "false";
        given.settings.push_back({.value = std::move(text),
                                  .where = yaml_.where(value),
                                  .name = name,
                                  .forced = given.section == Section::force});
    }

    void read_list(const KeyInfo& key, const YAML::Node& value, Given& given) {
        if (!value.IsSequence())
            return refuse(value, "`" + std::string(key.name) + ":` must be a list",
                          "Start each line below it with '- '.");
        for (const auto& item : value)
            read_value(key, item, given, {});
    }

    void read_map(const KeyInfo& key, const YAML::Node& value, Given& given) {
        if (!value.IsMap())
            return refuse(value, "`" + std::string(key.name) + ":` must be a mapping",
                          "Write `NAME: value` lines below it.");
        each(value, [&](const YAML::Node& name, const YAML::Node& inner) {
            if (!is_variable_name(name.Scalar()))
                return refuse(name, "'" + name.Scalar() + "' is not a valid variable name");
            read_value(key, inner, given, name.Scalar());
        });
    }

    const YamlFile& yaml_;
    FileContent content_;
};

} // namespace

FileContent read_file_content(const std::filesystem::path& file) {
    auto yaml = YamlFile::read(file);
    if (!yaml) return {.mistakes = {std::move(yaml.error())}};
    return FileReader(*yaml).read();
}

} // namespace containerize::config

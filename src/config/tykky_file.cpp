// Reads tykky's configuration file, so that sites coming from tykky can keep it.
#include "config/config_file.h"
#include "util/yaml_file.h"

#include <algorithm>
#include <array>
#include <utility>

namespace containerize::config {

namespace {

constexpr std::array<std::pair<std::string_view, Key>, 4> known = {{{"build_tmpdir_base", Key::staging},
                                                                    {"num_cpus", Key::jobs},
                                                                    {"max_num_cpus", Key::max_jobs},
                                                                    {"installation_prefix", Key::prefix}}};

class TykkyReader {
public:
    explicit TykkyReader(const YamlFile& yaml) : yaml_(yaml) {}

    // Not with YamlFile::each(), because tykky's YAML parser accepts duplicate keys.
    FileContent read() {
        const auto& root = yaml_.root();
        if (!root.IsDefined() || root.IsNull()) return {};
        if (!root.IsMap()) {
            content_.mistakes.push_back(
                yaml_
                    .refuse(root, "a tykky configuration must be a mapping with sections such as `defaults:`")
                    .error());
            return std::move(content_);
        }
        for (const auto& entry : root) {
            const auto name = entry.first.IsScalar() ? entry.first.Scalar() : "?";
            if (entry.second.IsNull()) continue;
            if (!entry.second.IsMap()) {
                note(entry.first, name);
                continue;
            }
            for (const auto& inner : entry.second)
                statement(name, inner.first, inner.second);
        }
        std::ranges::stable_sort(content_.statements, {}, &Given::section);
        return std::move(content_);
    }

private:
    void note(const YAML::Node& key, const std::string& name) {
        content_.notes.push_back("`" + name + ":` of tykky has no effect here (" + yaml_.where(key) + ")");
    }

    void statement(const std::string& section, const YAML::Node& key, const YAML::Node& value) {
        const auto name = key.IsScalar() ? key.Scalar() : "?";
        const bool forced = section == "force";
        const auto found = std::ranges::find(known, name, [](const auto& one) { return one.first; });
        const bool is_automatic = name == "container_src" && value.IsScalar() && value.Scalar() == "auto";
        if ((!forced && section != "defaults") || (found == known.end() && !is_automatic) ||
            (forced && found != known.end() && found->second == Key::prefix))
            return note(key, name);
        const auto& meant = info(is_automatic ? Key::base : found->second);
        std::string text = is_automatic ? "host" : value.IsScalar() ? value.Scalar() : "";
        if (auto good = meant.check(text); !good) {
            content_.mistakes.push_back(
                yaml_.refuse(value, "`" + name + "`: " + good.error().what, good.error().hint).error());
            return;
        }
        const auto where = yaml_.where(value);
        content_.statements.push_back(
            {.section = forced ? Section::force : Section::defaults,
             .key = meant.key,
             .settings = {{.value = std::move(text), .where = where, .forced = forced}},
             .where = where});
    }

    const YamlFile& yaml_;
    FileContent content_;
};

} // namespace

FileContent read_tykky_file(const std::filesystem::path& file) {
    auto yaml = YamlFile::read(file);
    if (!yaml) return {.mistakes = {std::move(yaml.error())}};
    return TykkyReader(*yaml).read();
}

} // namespace containerize::config

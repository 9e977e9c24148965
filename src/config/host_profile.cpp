#include "config/host_profile.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "util/yaml_file.h"

#include <algorithm>

namespace containerize::config {

namespace {

std::string profiles_in(const fs::path& directory) {
    std::vector<std::string> names;
    std::error_code failed;
    for (const auto& entry : entries_in(directory, failed))
        if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
    std::ranges::sort(names);
    return joined(names, ", ");
}

/// Calls `take` for each item of a list of strings.
Status each_text(const YamlFile& yaml, const std::string& key, const YAML::Node& value,
                 const std::function<Status(const std::string&)>& take) {
    if (!value.IsSequence())
        return yaml.refuse(value, "`" + key + ":` must be a list", "Start each line below it with '- '.");
    for (const auto& item : value) {
        if (!item.IsScalar()) return yaml.refuse(item, "an item of `" + key + ":` must be a single value");
        if (auto taken = take(item.Scalar()); !taken)
            return yaml.refuse(item, taken.error().what, taken.error().hint);
    }
    return {};
}

} // namespace

Result<HostProfile> read_host_profile(const std::string& name, const fs::path& directory) {
    const bool is_path = name.find('/') != std::string::npos;
    const fs::path file = is_path ? fs::path(name) : directory / (name + ".yaml");
    if (!is_path && !quiet::exists(file))
        return fail_input("there is no host profile '" + name + "'", {}, {},
                          "Available: " + profiles_in(directory) +
                              ". Give a profile of your own by its path.");
    const auto yaml = TRY(YamlFile::read(file));
    HostProfile profile;
    const auto bind = [&](const std::string& text) -> Status {
        auto parsed = TRY(manifest::parse_bind(text));
        profile.binds.push_back(std::move(parsed));
        return {};
    };
    const auto library = [&](const std::string& text) -> Status {
        if (!manifest::is_library_name(text))
            return fail_input("invalid name of a shared library: '" + text + "'", {}, {},
                              "Write the name that programs load, such as libcxi.so.1.");
        profile.libraries.push_back(text);
        return {};
    };
    if (!yaml.root().IsMap())
        return yaml.refuse(yaml.root(), "a host profile must be a mapping with `binds:` and `libraries:`");
    TRY(yaml.each(yaml.root(), [&](const YAML::Node& node, const YAML::Node& value) -> Status {
        const auto& key = node.Scalar();
        if (key == "binds") return each_text(yaml, key, value, bind);
        if (key == "libraries") return each_text(yaml, key, value, library);
        return yaml.refuse(value, "there is no setting `" + key + ":`",
                           "A host profile has `binds:` and `libraries:`.");
    }));
    return profile;
}

} // namespace containerize::config

#include "cli/tykky_settings.h"

#include "config/key.h"
#include "util/log.h"

#include <map>

namespace containerize::cli {

namespace {

/// An "export NAME=..." line for an entry of extra_envs. As in tykky, the value may refer to other variables.
Result<std::string> export_line(const YamlFile& file, const YAML::Node& entry) {
    const auto name = entry["name"].as<std::string>("");
    const auto value = entry["value"].as<std::string>("");
    const auto type = entry["type"].as<std::string>("");
    const bool good = !name.empty() && name.find_first_of("= \t\n\"'`;&|$()") == std::string::npos;
    if (!good) return file.refuse(entry, "`name:` is not a valid variable name");
    if (type == "set") return "export " + name + "=\"" + value + "\"\n";
    if (type == "append") return "export " + name + "=\"$" + name + ":" + value + "\"\n";
    if (type == "prepend") return "export " + name + "=\"" + value + ":$" + name + "\"\n";
    return file.refuse(entry, "`type:` must be set, append or prepend");
}

} // namespace

Status TykkySettings::read(const std::string& path, BuildArguments& arguments) {
    auto file = TRY(YamlFile::read(path));
    if (!file.root().IsMap())
        return file.refuse(file.root(), "the settings must be a mapping", "Write `KEY: VALUE` lines.");
    return file.each(file.root(), [&](const YAML::Node& key, const YAML::Node& value) {
        return read_key(file, key.Scalar(), value, arguments);
    });
}

Status TykkySettings::read_key(const YamlFile& file, const std::string& key, const YAML::Node& value,
                               BuildArguments& arguments) {
    const std::map<std::string, std::string*> texts = {{"mode", &mode},
                                                       {"env_file", &environment_file},
                                                       {"requirements_file", &requirements_file},
                                                       {"wrap_src", &wrap_source},
                                                       {"container_src", &arguments.base},
                                                       {"installation_prefix", &arguments.prefix},
                                                       {"build_tmpdir_base", &arguments.staging_parent}};
    if (const auto text = texts.find(key); text != texts.end()) {
        if (!value.IsScalar()) return file.refuse(value, "`" + key + ":` must be a string");
        // Typed options take precedence.
        if (text->second->empty()) *text->second = value.as<std::string>();
        return {};
    }
    if (key == "isolate") {
        arguments.isolate = config::parse_flag(value.as<std::string>("")).value_or(false);
        return {};
    }
    if (key == "use_uv") {
        arguments.uv = config::parse_flag(value.as<std::string>("")).value_or(false);
        return {};
    }
    if (key == "mask_wrap_install") {
        mask = value.as<bool>(false);
        return {};
    }
    if (key == "wrapper_paths") {
        if (!value.IsSequence()) return file.refuse(value, "`wrapper_paths:` must be a list");
        for (const auto& path : value)
            arguments.wrapper_paths.push_back(path.as<std::string>(""));
        return {};
    }
    if (key == "pre_install") return add_script(file, value, key, arguments.pre_install);
    if (key == "post_install") return add_script(file, value, key, arguments.post_install);
    if (key == "extra_envs") return add_script(file, value, key, arguments.environ_script);
    log::info("Note: `" + key + ":` in " + file.where(value) + " has no effect here.");
    return {};
}

Status TykkySettings::add_script(const YamlFile& file, const YAML::Node& list, const std::string& name,
                                 std::string& path) {
    if (!list.IsSequence()) return file.refuse(list, "`" + name + ":` must be a list");
    std::string script;
    for (const auto& entry : list) {
        script += TRY(script_line(file, entry));
    }
    if (!scripts_) {
        auto directory = TRY(Staging::create({}));
        scripts_.emplace(std::move(directory));
    }
    path = (scripts_->path() / (name + ".sh")).string();
    return write_file(path, script);
}

Result<std::string> TykkySettings::script_line(const YamlFile& file, const YAML::Node& entry) const {
    if (entry.IsScalar()) return entry.as<std::string>() + "\n";
    if (!entry.IsMap()) return file.refuse(entry, "this must be a line or `file: PATH`");
    if (!entry["file"]) return export_line(file, entry);
    auto text = read_file(entry["file"].as<std::string>(""));
    if (!text) return file.refuse(entry, "cannot read the script: " + text.error().why);
    return *text + "\n";
}

} // namespace containerize::cli

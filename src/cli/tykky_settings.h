// Reads the YAML files of `advanced` and -y, which can set the same as options, and more.
#pragma once

#include "cli/build_arguments.h"
#include "core/error.h"
#include "core/filesystem.h"
#include "core/staging.h"
#include "util/yaml_file.h"

#include <optional>
#include <string>

namespace containerize::cli {

/// The contents of a file. Inline scripts are written to a directory that this object owns.
class TykkySettings {
public:
    /// Stores settings in `arguments` where it has a member for them. Reports unknown keys; a wrong value is
    /// an input error with file:line.
    Status read(const std::string& file, BuildArguments& arguments);

    std::string mode; ///< "conda", "venv", "wrapdisk", "wrapcont"; empty if not set
    std::string environment_file, requirements_file, wrap_source;
    bool mask = false;

private:
    Status read_key(const YamlFile& file, const std::string& key, const YAML::Node& value,
                    BuildArguments& arguments);
    Status add_script(const YamlFile& file, const YAML::Node& list, const std::string& name,
                      std::string& path);
    Result<std::string> script_line(const YamlFile& file, const YAML::Node& entry) const;

    std::optional<Staging> scripts_;
};

} // namespace containerize::cli

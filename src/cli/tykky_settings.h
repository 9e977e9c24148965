// The YAML files of `advanced` and of -y, which say the same as options, and more.
#pragma once

#include "cli/build_options.h"
#include "util/error.h"
#include "util/filesystem.h"

#include <optional>
#include <string>

#include <yaml-cpp/yaml.h>

namespace containerize::spec {
class YamlFile;
}

namespace containerize::cli {

/// What a file says. Scripts that stand in it are written to a directory that goes with this object.
class TykkySettings {
public:
    /// Adds to `arguments` what it has a place for. A key that means nothing here is told; a wrong value is
    /// an input error with file:line.
    Status read(const std::string& file, BuildArguments& arguments);

    [[nodiscard]] const std::string& mode() const {
        return mode_;
    } ///< "conda", "venv", "wrapdisk", "wrapcont"
    [[nodiscard]] const std::string& environment_file() const { return environment_file_; }
    [[nodiscard]] const std::string& requirements_file() const { return requirements_file_; }
    [[nodiscard]] const std::string& wrap_source() const { return wrap_source_; }
    [[nodiscard]] bool mask() const { return mask_; }

private:
    Status read_key(const spec::YamlFile& file, const std::string& key, const YAML::Node& value,
                    BuildArguments& arguments);
    Status add_script(const spec::YamlFile& file, const YAML::Node& list, const std::string& name,
                      std::string& path);
    Result<std::string> script_line(const spec::YamlFile& file, const YAML::Node& entry) const;

    std::string mode_, environment_file_, requirements_file_, wrap_source_;
    bool mask_ = false;
    std::optional<Staging> scripts_;
};

} // namespace containerize::cli

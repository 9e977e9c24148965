// The entries of a pixi manifest: what each requests of conda's channels, and of pip.
#pragma once

#include "core/error.h"
#include "spec/conda_environment.h"
#include "util/toml_file.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::spec {

/// Fails with an input error if the table has a key that is not among those that are known: what it says
/// would be lost.
Status check_pixi_keys(const TomlFile& toml, const toml::table& table, std::string_view name,
                       std::initializer_list<std::string_view> known);

/// Reads an entry of `[dependencies]` or `[constraints]`: a version, or a table.
Result<CondaDependency> pixi_conda_dependency(const TomlFile& toml, std::string_view name,
                                              const toml::node& value);

/// Reads an entry of `[pypi-dependencies]` as a line of a requirements file.
Result<Located> pixi_requirement(const TomlFile& toml, std::string_view name, const toml::node& value);

/// Collects `[pypi-options]` of a workspace and of its features as lines of a requirements file.
class PixiPipOptions {
public:
    explicit PixiPipOptions(const TomlFile& toml) : toml_(toml) {}

    /// Those of the workspace come last, and yield to those of features.
    Status add(const toml::table& options, bool of_workspace);
    [[nodiscard]] std::vector<Located> lines() const;

private:
    Status single(const toml::table& options, std::string_view key, Located& value, bool of_workspace) const;
    Status indexes(const toml::table& options);
    Status links(const toml::table& options);
    Status formats(const toml::table& options, std::string_view key, std::string_view option);
    Status refuse_others(const toml::table& options) const;
    void add_line(std::string text, std::string where);

    const TomlFile& toml_;
    Located index_, prereleases_;
    std::vector<Located> lines_;
};

} // namespace containerize::spec

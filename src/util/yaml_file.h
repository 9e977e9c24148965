// Reads users' YAML files. Every error names and shows the line.
#pragma once

#include "core/error.h"
#include "util/yaml_size.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace containerize {

/// Suffices for lock files of many platforms, with a node per 15 bytes. Takes up to 500 MB of memory.
inline constexpr std::size_t most_nodes_of_lock = 1'000'000;

class YamlFile {
public:
    /// Fails with an input error if the file is not YAML, or has several documents or too many nodes. Errors
    /// show the line, unless the file may contain secrets.
    static Result<YamlFile> read(const std::filesystem::path& file,
                                 std::size_t most_nodes = most_nodes_by_hand, bool may_have_secrets = false);

    [[nodiscard]] const YAML::Node& root() const { return root_; }
    /// The line in which `node` begins, as written; empty if unknown.
    [[nodiscard]] std::string_view line(const YAML::Node& node) const;
    /// Returns "file:line".
    [[nodiscard]] std::string where(const YAML::Node& node) const;
    /// Returns an input error about `node`, with its line.
    [[nodiscard]] std::unexpected<Error> refuse(const YAML::Node& node, std::string what,
                                                std::string hint = {}) const;
    /// Calls `visit` for each key of a mapping. Fails if a key occurs twice.
    [[nodiscard]] Status
    each(const YAML::Node& mapping,
         const std::function<Status(const YAML::Node& key, const YAML::Node& value)>& visit) const;

private:
    [[nodiscard]] std::string_view line(int number) const; ///< counts from 1
    [[nodiscard]] std::string excerpt(int number) const;
    std::filesystem::path file_;
    std::string text_;
    bool shows_lines_ = true;
    std::vector<std::uint32_t> line_starts_; ///< offsets in text_, since many lines may be reported
    YAML::Node root_;
};

} // namespace containerize

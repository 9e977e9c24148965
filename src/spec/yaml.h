// YAML files of users: every complaint names the line, and shows it.
#pragma once

#include "util/error.h"
#include "util/yaml_size.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

namespace containerize::spec {

/// Lock files of many platforms have some megabytes, and a node for each 15 bytes: 500 MB at most.
inline constexpr std::size_t most_nodes_of_lock = 1'000'000;

class YamlFile {
public:
    /// Reads and parses. Not YAML, several documents, or absurdly large: an input error.
    static Result<YamlFile> read(const std::filesystem::path& file,
                                 std::size_t most_nodes = most_nodes_by_hand);

    [[nodiscard]] const YAML::Node& root() const { return root_; }
    /// "file:line"
    [[nodiscard]] std::string where(const YAML::Node& node) const;
    /// An input error about `node`, with its line.
    [[nodiscard]] std::unexpected<Error> refuse(const YAML::Node& node, std::string what,
                                                std::string hint = {}) const;
    /// Calls `visit` for each key of a mapping; a key twice is an error.
    [[nodiscard]] Status
    each(const YAML::Node& mapping,
         const std::function<Status(const YAML::Node& key, const YAML::Node& value)>& visit) const;

private:
    [[nodiscard]] std::string excerpt(int line) const; ///< counted from 1
    std::filesystem::path file_;
    std::string text_;
    std::vector<std::uint32_t> line_starts_; ///< in text_: a file may have as many mistakes as lines
    YAML::Node root_;
};

} // namespace containerize::spec

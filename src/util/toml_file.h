// Reads users' TOML files. Every error names the line. None shows it, since it may contain a login.
#pragma once

#include "core/error.h"
#include "util/toml.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace containerize {

class TomlFile {
public:
    /// Fails with an input error if the file is not TOML, or too large.
    static Result<TomlFile> read(const std::filesystem::path& file);

    /// The same for TOML within `file`, which starts after `lines_before` lines.
    static Result<TomlFile> parse(std::string_view text, const std::filesystem::path& file,
                                  std::size_t lines_before = 0);

    [[nodiscard]] const toml::table& root() const { return root_; }
    [[nodiscard]] const std::filesystem::path& file() const { return file_; }
    /// Returns "file:line".
    [[nodiscard]] std::string where(const toml::node& node) const;
    /// Returns an input error about `node`.
    [[nodiscard]] std::unexpected<Error> refuse(const toml::node& node, std::string what,
                                                std::string why = {}, std::string hint = {}) const;

    // The values of keys. They are empty if the key is missing; a value of another type is an input error.
    [[nodiscard]] Result<std::string> text(const toml::table& table, std::string_view key) const;
    [[nodiscard]] Result<std::vector<std::string>> texts(const toml::table& table,
                                                         std::string_view key) const;
    /// The items of an array, all of which must be strings; `name` is for the message.
    [[nodiscard]] Result<std::vector<const toml::value<std::string>*>> strings(const toml::node& value,
                                                                               std::string_view name) const;
    /// The keys of a table.
    [[nodiscard]] Result<std::vector<std::string>> keys(const toml::table& table, std::string_view key) const;
    [[nodiscard]] Result<const toml::table*> table(const toml::table& table, std::string_view key) const;
    /// The items of an array, all of which must be tables.
    [[nodiscard]] Result<std::vector<const toml::table*>> tables(const toml::table& table,
                                                                 std::string_view key) const;
    /// The same for a value that was found otherwise; `name` is for the message.
    [[nodiscard]] Result<std::vector<const toml::table*>> tables(const toml::node& value,
                                                                 std::string_view name) const;

private:
    std::filesystem::path file_;
    std::size_t lines_before_ = 0;
    toml::table root_;
};

} // namespace containerize

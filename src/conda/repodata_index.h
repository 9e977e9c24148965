// Where in a package list the records of each name are, and which names those need: a request reads what it
// can reach, and of a list of half a million packages that is little.
#pragma once

#include "conda/repodata.h"
#include "util/error.h"
#include "util/mapped_file.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::conda {

/// A record in the list's text: `"numpy-1.26.4-0.conda": {...}`, from the first quotation mark on.
struct RecordPlace {
    std::uint64_t offset = 0, length = 0; ///< bytes
};

class RepodataIndex {
public:
    /// Of a list's text. It is kept where the list says, and read from there if it is of this very list; a
    /// damaged one is made again. An error if the list is no package list.
    static Result<RepodataIndex> of(const Repodata& list, std::string_view json);

    [[nodiscard]] std::size_t records() const { return records_; }
    /// All of them, sorted.
    [[nodiscard]] const std::vector<std::string_view>& names() const { return names_; }
    /// What the records of a name depend on: names, or patterns of them. Nothing for a name that the list has
    /// not.
    [[nodiscard]] std::vector<std::string_view> needs(std::string_view name) const;
    /// Where its records are. A .tar.bz2 that there is as a .conda, too, is left out.
    [[nodiscard]] std::vector<RecordPlace> places(std::string_view name) const;

private:
    RepodataIndex() = default;
    static std::optional<RepodataIndex> parse(std::string text, std::size_t json_size);
    [[nodiscard]] std::string_view line(std::string_view name) const;

    /// In one place when the index moves: a header, then a line for each name: "NAME\tNEED NEED\tOFFSET
    /// LENGTH OFFSET LENGTH".
    std::unique_ptr<const std::string> text_;
    std::vector<std::string_view> names_; ///< in *text_
    std::size_t records_ = 0, json_size_ = 0;
};

/// The name, or the pattern of names, that a dependency is about: "numpy" of "numpy >=1.20". Empty if it is
/// none.
std::string name_of_dependency(std::string_view text);

std::unexpected<Error> damaged_list(const Repodata& list, std::string why);

} // namespace containerize::conda

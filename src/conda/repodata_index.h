// Indexes repodata by name: where a package's records are and what they depend on. So a request parses only
// the few records that it can reach.
#pragma once

#include "conda/repodata.h"
#include "core/error.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::conda {

/// The text of a record: `"numpy-1.26.4-0.conda": {...}`, starting at the first quotation mark.
struct RecordPlace {
    std::uint64_t offset = 0, length = 0; ///< in bytes
};

class RepodataIndex {
public:
    /// Returns the index for repodata with the text `json`: the one cached for it, or a new one, which is
    /// cached. Fails if the text is not repodata.
    static Result<RepodataIndex> of(const Repodata& list, std::string_view json);

    [[nodiscard]] std::size_t records() const { return records_; }
    /// All names, sorted.
    [[nodiscard]] const std::vector<std::string_view>& names() const { return names_; }
    /// Names, or patterns, that the records of `name` depend on; empty if there is no such name.
    [[nodiscard]] std::vector<std::string_view> needs(std::string_view name) const;
    /// The records of `name`. Omits a .tar.bz2 if the same package exists as .conda.
    [[nodiscard]] std::vector<RecordPlace> places(std::string_view name) const;

private:
    RepodataIndex() = default;
    static std::optional<RepodataIndex> parse(std::string text, std::size_t json_size);
    [[nodiscard]] std::string_view line(std::string_view name) const;

    /// A header, then a line for each name: "NAME\tNEED NEED\tOFFSET LENGTH OFFSET LENGTH". On the heap, so
    /// that names_ stays valid when the index is moved.
    std::unique_ptr<const std::string> text_;
    std::vector<std::string_view> names_; ///< views into *text_
    std::size_t records_ = 0, json_size_ = 0;
};

/// The name, or name pattern, in a dependency: "numpy" in "numpy >=1.20". Empty if it is invalid.
std::string name_of_dependency(std::string_view text);

std::unexpected<Error> damaged_list(const Repodata& list, std::string why);

} // namespace containerize::conda

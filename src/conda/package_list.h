// The packages of one subdir of one channel, by name: from its whole list, or from those of its shards that
// were fetched (CEP 16).
#pragma once

#include "conda/conda_config.h"
#include "conda/repodata.h"
#include "conda/repodata_index.h"
#include "core/error.h"
#include "core/mapped_file.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::conda {

/// Sorted, because the solution depends on the order of packages.
using Names = std::set<std::string, std::less<>>;

class PackageList {
public:
    static Result<PackageList> open(const Repodata& source);

    [[nodiscard]] const Repodata& source() const { return source_; }
    /// Where the archives are, without a final '/'.
    [[nodiscard]] const std::string& base_url() const { return base_url_; }
    /// All names, sorted.
    [[nodiscard]] const std::vector<std::string_view>& names() const;
    /// The number of records that can be read.
    [[nodiscard]] std::size_t size() const;
    /// Names, or patterns, that the records of `name` depend on.
    [[nodiscard]] std::vector<std::string_view> needs(std::string_view name) const;
    /// The texts of these packages' records: `"numpy-1.26.4-0.conda": {...}`. Valid as long as the list.
    /// Channels sort their lists by file name, so that the order is the same with shards.
    [[nodiscard]] std::vector<std::string_view> records(const Names& names) const;

    /// The digest of the shard with the records of `name`; empty if there is none, or add_shard() had it.
    [[nodiscard]] std::string_view missing_shard(std::string_view name) const;
    /// Where to fetch the shard, best first, with credentials.
    [[nodiscard]] std::vector<std::string> shard_urls(std::string_view digest, const Config& config) const;
    /// Whether shards may be on another server than the list.
    [[nodiscard]] bool has_shards_elsewhere() const;
    /// Adds a shard with the right digest, and returns how many bytes it needs. Fails if it is damaged or
    /// contains another package.
    Result<std::uint64_t> add_shard(std::string_view name, std::string_view packed);
    /// For a shard, or the index, that cannot be used.
    [[nodiscard]] std::unexpected<Error> damaged_shards(std::string why) const;

private:
    /// A list, or a shard.
    struct Part {
        std::string_view json;
        RepodataIndex index;
    };

    explicit PackageList(Repodata source);
    Status read_shard_index(std::string_view json);
    [[nodiscard]] const Part* part(std::string_view name) const;

    Repodata source_;
    std::string base_url_, shards_url_;
    std::optional<MappedFile> file_; ///< of a whole list
    std::deque<std::string> shards_; ///< as JSON
    /// Of the shards by name; of a whole list by "".
    std::map<std::string, Part, std::less<>> parts_;
    std::map<std::string, std::string, std::less<>> digests_; ///< of the shards, by name
    std::vector<std::string_view> shard_names_;               ///< views into digests_
};

} // namespace containerize::conda

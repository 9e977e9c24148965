#include "conda/reach.h"

#include "conda/cache_directory.h"
#include "conda/match_spec.h"
#include "conda/repodata_file.h"
#include "conda/repodata_state.h"
#include "conda/temporary.h"
#include "core/interrupt.h"
#include "core/read_write.h"
#include "core/text.h"
#include "util/digest.h"
#include "util/log.h"
#include "util/progress.h"

#include <utility>

#include <fmt/format.h>

namespace containerize::conda {

namespace {

/// A predicate for at least the names that the pattern matches: for a glob, all with its literal beginning.
std::function<bool(std::string_view)> names_that_may_match(std::string_view pattern) {
    if (pattern.starts_with('^')) {
        auto expression = StringMatch::parse(pattern);
        if (!expression) return [](std::string_view) { return false; };
        return
            [expression = std::move(*expression)](std::string_view name) { return expression.matches(name); };
    }
    const std::string start(
        pattern.substr(0, pattern.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-")));
    return [start](std::string_view name) { return name.starts_with(start); };
}

/// The shard in the cache, if there is one with this digest; otherwise empty.
std::string read_kept_shard(const fs::path& file, std::string_view digest) {
    const auto own = open_own(file);
    if (!own) return {};
    auto packed = read_file(path_of(*own.file), largest_shard);
    // Others cannot write it, but a power failure can have cut it off.
    if (!packed || sha256(*packed) != digest) return {};
    mark_used(file);
    return std::move(*packed);
}

/// Without waiting for the disk, as there are many, and each is verified when it is read.
void keep_shard(const fs::path& file, std::string_view packed) {
    Temporary written(file.parent_path());
    if (written && write_all(written.file().fd(), packed) &&
        rename(written.file().path.c_str(), file.c_str()) == 0)
        return;
    log::detail("cannot write to the cache: " + file.string()); // it is fetched again next time
}

class Reach {
public:
    Reach(const std::vector<PackageList*>& lists, const ShardAccess& access)
        : lists_(lists), access_(access) {}

    Result<Names> run(const std::vector<std::string>& wanted) {
        for (const auto& name : wanted)
            add(name);
        TRY(follow());
        if (!queue_.empty()) TRY(fetch());
        return std::move(reached_);
    }

private:
    struct Shard {
        PackageList* list;
        std::string name, digest;
        [[nodiscard]] fs::path file() const {
            return list->source().cache / (digest + std::string(shard_ending));
        }
    };

    void add(std::string_view name) {
        if (!is_name_pattern(name)) return add_name(name);
        if (!patterns_.emplace(name).second) return;
        const auto fits = names_that_may_match(name);
        for (const auto* list : lists_)
            for (const auto one : list->names())
                if (fits(lower(one))) add_name(one);
    }

    void add_name(std::string_view name) {
        if (!reached_.contains(name)) next_.emplace_back(*reached_.emplace(name).first);
    }

    /// Follows the dependencies as far as the records are there, and queues the missing shards.
    Status follow() {
        while (!next_.empty()) {
            if (interrupted()) return fail_interrupted();
            const auto name = std::move(next_.back());
            next_.pop_back();
            for (auto* list : lists_) {
                if (const std::string digest(list->missing_shard(name)); !digest.empty())
                    TRY(find({.list = list, .name = name, .digest = digest}));
                add_needs(*list, name);
            }
        }
        return {};
    }

    void add_needs(const PackageList& list, std::string_view name) {
        for (const auto need : list.needs(name))
            add(need);
    }

    Status add_shard(const Shard& shard, std::string_view packed) {
        held_ += packed.size() + TRY(shard.list->add_shard(shard.name, packed));
        if (held_ <= access_.largest) return {};
        return shard.list->damaged_shards(fmt::format(
            "the packages that the request can reach need more than {}", human_bytes(access_.largest)));
    }

    Status find(Shard shard) {
        if (const auto packed = read_kept_shard(shard.file(), shard.digest); !packed.empty())
            return add_shard(shard, packed);
        if (access_.offline)
            return fail({.what = "the cache does not have the package list of " + shard.name,
                         .why = "--offline forbids using the network",
                         .where = shard.list->source().channel.name + "/" + shard.list->source().subdir,
                         .hint =
                             "Run once without --offline, with the same cache and the same packages, on a "
                             "machine that can reach the channel."});
        queue_.push_back(std::move(shard));
        return {};
    }

    Status fetch() {
        std::uint64_t bytes = 0;
        const http::Observer observer{
            .progress = access_.progress,
            .finished = [&](std::size_t index, const Result<http::Response>& result) -> Status {
                if (result) bytes += result->size;
                return take(asked_[index], result);
            },
            .more = [this] { return requests(); }};
        const auto results = http::fetch(requests(), access_.config.http, observer);
        for (const auto& result : results)
            if (!result) return fail(Error(result.error()));
        log::detail(fmt::format("package lists: {} fetched, {}", counted(asked_.size(), "shard"),
                                human_bytes(bytes)));
        return {};
    }

    /// The requests for the queued shards.
    std::vector<http::Request> requests() {
        std::vector<http::Request> requests;
        for (auto& shard : std::exchange(queue_, {})) {
            http::Request request;
            request.urls = shard.list->shard_urls(shard.digest, access_.config);
            request.limit = largest_shard;
            request.sha256 = shard.digest;
            request.named_by_server = shard.list->has_shards_elsewhere();
            requests.push_back(std::move(request));
            asked_.push_back(std::move(shard));
        }
        return requests;
    }

    Status take(const Shard& shard, const Result<http::Response>& result) {
        if (!result) {
            auto error = result.error();
            if (interrupted()) return fail(std::move(error));
            forget_freshness(shard.list->source());
            error.hint += (error.hint.empty() ? "" : "\n") +
                          fmt::format("This is the package list of {}. The channel may have changed in this "
                                      "moment: try again. {}",
                                      shard.name, hint_to_whole_list);
            return fail(std::move(error));
        }
        keep_shard(shard.file(), result->body);
        TRY(add_shard(shard, result->body));
        add_needs(*shard.list, shard.name);
        return follow();
    }

    /// The index may name a shard that the channel has replaced, so it must be asked for again, however fresh
    /// it is.
    static void forget_freshness(const Repodata& source) {
        const RepodataSlot slot(source.cache, list_address(source.channel, source.subdir));
        auto state = slot.read();
        if (!state) return;
        state->checked = 0;
        if (auto written = slot.write(*state); !written) log::detail(to_string(written.error()));
    }

    const std::vector<PackageList*>& lists_;
    const ShardAccess& access_;
    Names reached_, patterns_; ///< patterns are usually none, but many records may need the same one
    std::vector<std::string> next_;
    std::vector<Shard> queue_, asked_; ///< to be asked for; asked for, in the order of requests
    std::uint64_t held_ = 0;           ///< bytes in memory
};

} // namespace

Result<Names> reach(const std::vector<PackageList*>& lists, const std::vector<std::string>& wanted,
                    const ShardAccess& access) {
    return Reach(lists, access).run(wanted);
}

} // namespace containerize::conda

#include "conda/matching.h"

#include "conda/libsolv.h"

#include <algorithm>
#include <map>
#include <unordered_set>

namespace containerize::conda {

namespace {

/// Whether libsolv's data suffices to match the spec.
bool is_simple(const MatchSpec& spec) {
    return !spec.build_number && spec.subdir.empty() && spec.file_name.empty() && spec.md5.empty() &&
           spec.sha256.empty() && spec.license.empty() && spec.license_family.empty() &&
           spec.track_features.empty();
}

/// Strips the channel or namespace: a dependency may be satisfied from any channel.
std::string_view without_channel(std::string_view text) {
    const auto colon = text.substr(0, text.find_first_of(" =<>!~[")).rfind(':');
    return colon == text.npos ? text : text.substr(colon + 1);
}

} // namespace

Matching::Matching(Pool* pool, RecordOf record_of) : pool_(pool), record_of_(std::move(record_of)) {
    pool->nscallback = provide;
    pool->nscallbackdata = this;
}

Id Matching::dependency(std::string_view text) {
    // Refuse control characters, since messages show the dependency.
    const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7F; };
    if (std::ranges::any_of(text, is_control)) return 0;
    const auto [known, is_new] = dependencies_.emplace(text, 0);
    if (!is_new) return known->second;
    const auto own = without_channel(text);
    const auto spec = parse_match_spec(own, UnknownKeys::ignored);
    if (!spec) return 0;
    const Id name = pool_str2id(pool_, spec->name.c_str(), 1);
    const bool any = !spec->version && !spec->build && is_simple(*spec) && !is_name_pattern(spec->name);
    return known->second =
               any ? name
                   : pool_rel2id(pool_, name,
                                 pool_strn2id(pool_, own.data(), static_cast<unsigned>(own.size()), 1),
                                 REL_NAMESPACE, 1);
}

void Matching::rank_versions() {
    std::map<Id, std::vector<Id>> by_name;
    versions_.assign(static_cast<std::size_t>(pool_->nsolvables), 0);
    for (Id id = 1; id < pool_->nsolvables; ++id) {
        const Solvable* solvable = pool_id2solvable(pool_, id);
        if (solvable->repo == nullptr) continue;
        versions_[static_cast<std::size_t>(id)] = solvable->evr;
        by_name[solvable->name].push_back(id);
    }
    for (const auto& [name, solvables] : by_name) {
        std::vector<std::pair<const Version*, Id>> order; // invalid versions come first
        std::vector<Id> texts;
        for (const Id id : solvables)
            texts.push_back(pool_id2solvable(pool_, id)->evr);
        std::ranges::sort(texts);
        texts.erase(std::ranges::unique(texts).begin(), texts.end());
        for (const Id text : texts) {
            const auto& version = parsed(text);
            order.emplace_back(version ? &*version : nullptr, text);
        }
        const auto before = [](const auto& one, const auto& other) {
            if (one.first == nullptr || other.first == nullptr)
                return one.first == nullptr && other.first != nullptr;
            return *one.first < *other.first;
        };
        std::ranges::stable_sort(order, before);
        std::unordered_map<Id, Id> ranks;
        std::size_t rank = 0;
        for (std::size_t i = 0; i < order.size(); ++i) {
            if (i > 0 && before(order[i - 1], order[i])) ++rank;
            ranks[order[i].second] = pool_str2id(pool_, std::to_string(rank).c_str(), 1);
        }
        for (const Id id : solvables) {
            Solvable* solvable = pool_id2solvable(pool_, id);
            solvable->evr = ranks.at(solvable->evr);
        }
    }
}

Id Matching::version_id(Id solvable) const {
    const auto at = static_cast<std::size_t>(solvable);
    const Id known = at < versions_.size() ? versions_[at] : 0;
    return known != 0 ? known : pool_id2solvable(pool_, solvable)->evr;
}

std::string Matching::version(Id solvable) const {
    return pool_id2str(pool_, version_id(solvable));
}

const std::optional<Version>& Matching::parsed(Id version) const {
    const auto [known, is_new] = parsed_.try_emplace(version);
    if (is_new)
        if (auto read = Version::parse(pool_id2str(pool_, version))) known->second = std::move(*read);
    return known->second;
}

bool Matching::matches(const MatchSpec& spec, Id solvable) const {
    if (!is_simple(spec)) {
        const auto whole = record_of_(solvable);
        return whole && spec.matches(*whole);
    }
    if (spec.build && !spec.build->matches(lookup_text(pool_, solvable, SOLVABLE_BUILDFLAVOR))) return false;
    if (!spec.version) return true;
    const auto& version = parsed(version_id(solvable));
    return version && spec.version->matches(*version);
}

/// The installable packages of a name or pattern, ordered by id.
std::vector<Id> Matching::named(const std::string& name) const {
    std::vector<Id> found;
    const auto add = [&](Id name_id) {
        Id solvable = 0;
        Id at = 0;
        Pool* pool = pool_;
        FOR_PROVIDES(solvable, at, name_id) {
            found.push_back(solvable);
        }
    };
    if (!is_name_pattern(name)) {
        if (const Id id = pool_str2id(pool_, name.c_str(), 0); id != 0) add(id);
        return found;
    }
    std::unordered_set<Id> names;
    for (Id id = 1; id < pool_->nsolvables; ++id) {
        const Solvable* solvable = pool_id2solvable(pool_, id);
        if (solvable->repo == nullptr || !names.insert(solvable->name).second) continue;
        if (name_matches(name, pool_id2str(pool_, solvable->name))) add(solvable->name);
    }
    std::ranges::sort(found);
    return found;
}

/// libsolv's callback: returns the solvables that satisfy a dependency. Called once for each.
Id Matching::provide(Pool* pool, void* self, Id, Id text) {
    const auto& matching = *static_cast<const Matching*>(self);
    const auto spec = parse_match_spec(pool_id2str(pool, text), UnknownKeys::ignored);
    if (!spec) return 0;
    QueueOwner found;
    for (const Id solvable : matching.named(spec->name))
        if (matching.matches(*spec, solvable)) queue_push(&found.queue, solvable);
    return found.queue.count == 0 ? 0 : pool_queuetowhatprovides(pool, &found.queue);
}

std::string dependency_text(Pool* pool, Id dependency) {
    if (!ISRELDEP(dependency)) return pool_id2str(pool, dependency);
    return pool_id2str(pool, GETRELDEP(pool, dependency)->evr);
}

} // namespace containerize::conda

#include "conda/package_pool.h"

#include "conda/libsolv.h"
#include "conda/matching.h"
#include "conda/package_list.h"
#include "core/text.h"
#include "util/json.h"
#include "util/log.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

namespace containerize::conda {

namespace {

namespace ondemand = simdjson::ondemand;

/// Fills one repository with records from a list.
class Reader {
public:
    Reader(Repo* repo, const PackageList& list, Matching& matching,
           std::unordered_map<Id, std::string_view>& records, const std::optional<Cutoff>& cutoff)
        : repo_(repo), pool_(repo->pool), list_(list), matching_(matching), records_(records),
          cutoff_(cutoff), data_(repo_add_repodata(repo, 0)) {}

    Status read(const Names& names) {
        try {
            for (const auto text : list_.records(names))
                record(text);
        } catch (const simdjson::simdjson_error& error) {
            return damaged_list(list_.source(), error.what());
        }
        repodata_internalize(data_);
        return {};
    }

    [[nodiscard]] std::size_t left_out() const { return left_out_; }

private:
    void record(std::string_view text) {
        buffer_.assign("{").append(text).append("}");
        buffer_.reserve(buffer_.size() + simdjson::SIMDJSON_PADDING);
        auto document = parser_.iterate(buffer_);
        for (auto field : document.get_object()) {
            const std::string file(std::string_view(field.unescaped_key()));
            ondemand::object object = field.value().get_object();
            const auto start =
                static_cast<std::size_t>(std::string_view(object.raw_json()).data() - buffer_.data()) - 1;
            object.reset();
            package(file, object, text.substr(start));
        }
    }

    void package(const std::string& file, ondemand::object& object, std::string_view raw) {
        const Id id = repo_add_solvable(repo_);
        try {
            fill(id, object);
        } catch (const simdjson::simdjson_error& error) {
            leave_out(id);
            // Skip a record with values of wrong types; a damaged document is an error.
            if (error.error() != simdjson::INCORRECT_TYPE && error.error() != simdjson::NUMBER_ERROR) throw;
            return skip(file, error.what());
        }
        Solvable* solvable = pool_id2solvable(pool_, id);
        if (solvable->name == 0 || solvable->evr == 0 || !plain_ || !has_build_) {
            leave_out(id);
            return skip(file, "its name, version, build or a dependency is invalid");
        }
        if (cutoff_ && !is_older()) {
            leave_out(id);
            ++left_out_;
            return;
        }
        solvable->provides = repo_addid_dep(repo_, solvable->provides,
                                            pool_rel2id(pool_, solvable->name, solvable->evr, REL_EQ, 1), 0);
        repodata_set_str(data_, id, SOLVABLE_MEDIAFILE, file.c_str());
        records_[id] = raw;
    }

    /// By when the channel published it, or if it does not tell that, when it was built (CEP 47).
    [[nodiscard]] bool is_older() const {
        const auto time = published_ != 0 ? published_ : built_;
        return time != 0 && time < static_cast<std::uint64_t>(cutoff_->seconds);
    }

    /// Does not reuse the id: libsolv would apply this record's data to the next one.
    void leave_out(Id id) { repo_free_solvable(repo_, id, 0); }

    void skip(std::string_view file, std::string_view why) const {
        log::detail(fmt::format("{}/{}: {} is ignored: {}", list_.source().channel.name,
                                list_.source().subdir, file, why));
    }

    void fill(Id id, ondemand::object& object) {
        Solvable* solvable = pool_id2solvable(pool_, id);
        plain_ = true;
        has_build_ = false;
        built_ = published_ = 0;
        for (auto field : object) {
            const std::string_view key = field.unescaped_key();
            ondemand::value value = field.value();
            if (key == "name") {
                solvable->name = plain_id(value.get_string());
            } else if (key == "version") {
                solvable->evr = plain_id(value.get_string());
            } else if (key == "build") {
                const std::string_view build = value.get_string();
                plain_ = plain_ && is_plain(build);
                has_build_ = true;
                repodata_add_poolstr_array(data_, id, SOLVABLE_BUILDFLAVOR, c_string(build));
            } else if (key == "build_number") {
                repodata_set_str(data_, id, SOLVABLE_BUILDVERSION, std::to_string(number(value)).c_str());
            } else if (key == "depends") {
                for (auto one : value.get_array()) {
                    const Id dependency = matching_.dependency(one.get_string());
                    plain_ = plain_ && dependency != 0; // the package would not work without it
                    if (dependency != 0)
                        solvable->requires_offset =
                            repo_addid_dep(repo_, solvable->requires_offset, dependency, 0);
                }
            } else if (key == "constrains") {
                for (auto one : value.get_array())
                    if (const Id dependency = matching_.dependency(one.get_string()))
                        repodata_add_idarray(data_, id, SOLVABLE_CONSTRAINS, dependency);
            } else if (key == "track_features") {
                track_features(id, value);
            } else if (key == "timestamp") {
                built_ = seconds(value);
                repodata_set_num(data_, id, SOLVABLE_BUILDTIME, built_);
            } else if (key == "indexed_timestamp") {
                published_ = seconds(value);
            }
        }
    }

    void track_features(Id id, ondemand::value value) {
        if (value.type() == ondemand::json_type::array) {
            for (auto one : value.get_array())
                add_features(id, one.get_string());
        } else if (value.type() == ondemand::json_type::string) {
            add_features(id, value.get_string());
        }
    }

    void add_features(Id id, std::string_view text) {
        for (const auto& feature : words_in(text, " ,\t"))
            repodata_add_idarray(data_, id, SOLVABLE_TRACK_FEATURES, text_id(feature));
    }

    static std::uint64_t number(ondemand::value value) {
        if (value.type() != ondemand::json_type::number) return 0;
        const double as_double = value.get_double();
        return as_double >= 0 && as_double < 1e18 ? static_cast<std::uint64_t>(as_double) : 0;
    }

    /// Some channels have seconds, others milliseconds.
    static std::uint64_t seconds(ondemand::value value) {
        const auto time = number(value);
        return time > 253'402'300'799ULL ? time / 1000 : time;
    }

    Id plain_id(std::string_view text) {
        plain_ = plain_ && is_plain(text);
        return text_id(text);
    }
    Id text_id(std::string_view text) {
        return pool_strn2id(pool_, text.data(), static_cast<unsigned>(text.size()), 1);
    }
    const char* c_string(std::string_view text) {
        c_string_ = text;
        return c_string_.c_str();
    }
    Repo* repo_;
    Pool* pool_;
    const PackageList& list_;
    Matching& matching_;
    std::unordered_map<Id, std::string_view>& records_;
    const std::optional<Cutoff>& cutoff_;
    std::size_t left_out_ = 0;
    ::Repodata* data_;
    ondemand::parser parser_;
    bool plain_ = true; ///< whether the record's name, version, build and dependencies are valid
    bool has_build_ = false;
    std::uint64_t built_ = 0, published_ = 0; ///< seconds since 1970; 0 if unknown
    std::string buffer_, c_string_;
};

} // namespace

struct PackagePool::State {
    Pool* pool = pool_create();
    std::map<const Repo*, PackageList> lists;
    Repo* of_machine = nullptr;
    std::unordered_map<Id, std::string> channels_of_installed;
    std::unordered_map<Id, std::string_view> records; ///< text of each record, in its list
    std::unordered_map<Id, std::vector<Id>> by_name;  ///< solvables from channels
    std::size_t left_out = 0;
    Matching matching{pool, [this](Id solvable) { return record(solvable); }};

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { pool_free(pool); }

    Result<Repo*> open_list(const Repodata& source);
    Status read_records(const Names& names, const std::optional<Cutoff>& cutoff);
    [[nodiscard]] Result<PackageRecord> record(Id solvable) const;
    void note_channels_of_installed();
    void add_machine(const std::vector<VirtualPackage>& machine);
};

Result<Repo*> PackagePool::State::open_list(const Repodata& source) {
    auto list = TRY(PackageList::open(source));
    Repo* repo = repo_create(pool, (source.channel.url + "/" + source.subdir).c_str());
    repo->priority = source.priority;
    lists.emplace(repo, std::move(list));
    return repo;
}

Status PackagePool::State::read_records(const Names& names, const std::optional<Cutoff>& cutoff) {
    const std::optional<Cutoff> none;
    for (int i = 1; i < pool->nrepos; ++i) {
        Repo* repo = pool->repos[i];
        Reader reader(repo, lists.at(repo), matching, records, repo == pool->installed ? none : cutoff);
        TRY(reader.read(names));
        left_out += reader.left_out();
    }
    return {};
}

void PackagePool::State::note_channels_of_installed() {
    Id id = 0;
    const Solvable* solvable = nullptr;
    FOR_REPO_SOLVABLES(pool->installed, id, solvable) {
        const auto entry = parse_json_quietly(records.at(id));
        channels_of_installed[id] = entry.is_object() ? entry.value("channel", "") : "";
    }
}

// Not as libsolv's installed repository, for which it would check all candidates' dependencies again.
void PackagePool::State::add_machine(const std::vector<VirtualPackage>& machine) {
    Repo* repo = repo_create(pool, "machine");
    ::Repodata* data = repo_add_repodata(repo, 0);
    for (const auto& package : machine) {
        const Id id = add_solvable(repo, package.name, package.version);
        repodata_add_poolstr_array(data, id, SOLVABLE_BUILDFLAVOR, package.build.c_str());
        repodata_set_str(data, id, SOLVABLE_BUILDVERSION, "0");
    }
    repodata_internalize(data);
    of_machine = repo;
}

PackagePool::PackagePool(std::unique_ptr<State> state) : state_(std::move(state)) {}
PackagePool::PackagePool(PackagePool&&) noexcept = default;
PackagePool& PackagePool::operator=(PackagePool&&) noexcept = default;
PackagePool::~PackagePool() = default;

Result<PackagePool> PackagePool::load(const std::vector<Repodata>& lists, std::vector<std::string> wanted,
                                      const std::vector<VirtualPackage>& machine,
                                      const LoadOptions& options) {
    const auto* installed = options.installed;
    auto state = std::make_unique<State>();
    pool_setdisttype(state->pool, DISTTYPE_CONDA);
    for (const auto& list : lists) {
        if (!list.json) continue;
        TRY(state->open_list(list));
    }
    if (installed != nullptr) {
        Repo* repo = TRY(state->open_list(*installed));
        pool_set_installed(state->pool, repo);
        for (const auto name : state->lists.at(repo).names())
            wanted.emplace_back(name);
    }
    std::vector<PackageList*> opened;
    for (int i = 1; i < state->pool->nrepos; ++i)
        opened.push_back(&state->lists.at(state->pool->repos[i]));
    const auto names = TRY(reach(opened, wanted, options.shards));
    TRY(state->read_records(names, options.exclude_newer));
    if (installed != nullptr) state->note_channels_of_installed();
    for (Id id = 1; id < state->pool->nsolvables; ++id)
        if (const Solvable* solvable = pool_id2solvable(state->pool, id); solvable->repo != nullptr)
            state->by_name[solvable->name].push_back(id);
    state->matching.rank_versions();
    state->add_machine(machine);
    return PackagePool(std::move(state));
}

Pool* PackagePool::pool() const {
    return state_->pool;
}

s_Repo* PackagePool::machine() const {
    return state_->of_machine;
}

Result<PackageRecord> PackagePool::State::record(Id solvable) const {
    const Solvable* of_pool = pool_id2solvable(pool, solvable);
    const auto text = records.find(solvable);
    if (text == records.end()) { // a virtual package
        PackageRecord record;
        record.name = pool_id2str(pool, of_pool->name);
        record.version = matching.version(solvable);
        record.build = lookup_text(pool, solvable, SOLVABLE_BUILDFLAVOR);
        return record;
    }
    const auto& list = lists.at(of_pool->repo);
    auto record = parse_record(parse_json_quietly(text->second));
    if (!record) {
        record.error().where = list.source().channel.url;
        return record;
    }
    if (record->subdir.empty()) record->subdir = list.source().subdir;
    record->channel = list.source().channel.url;
    record->file_name = lookup_text(pool, solvable, SOLVABLE_MEDIAFILE);
    record->url = list.base_url() + "/" + record->file_name;
    return record;
}

Result<PackageRecord> PackagePool::record(Id solvable) const {
    return state_->record(solvable);
}

std::string PackagePool::version(Id solvable) const {
    return state_->matching.version(solvable);
}

Id PackagePool::dependency(const MatchSpec& spec) {
    return state_->matching.dependency(spec.to_string());
}

const std::string& PackagePool::channel(Id solvable) const {
    static const std::string none;
    if (const auto own = state_->channels_of_installed.find(solvable);
        own != state_->channels_of_installed.end())
        return own->second;
    const auto found = state_->lists.find(pool_id2solvable(state_->pool, solvable)->repo);
    return found == state_->lists.end() ? none : found->second.source().channel.url;
}

bool PackagePool::is_virtual(Id solvable) const {
    return pool_id2solvable(state_->pool, solvable)->repo == state_->of_machine;
}

bool PackagePool::is_installed(Id solvable) const {
    const Repo* repo = pool_id2solvable(state_->pool, solvable)->repo;
    return repo != nullptr && repo == state_->pool->installed;
}

std::vector<Id> PackagePool::matching(const MatchSpec& spec, const std::vector<std::string>& channels) const {
    Pool* pool = state_->pool;
    const bool pattern = is_name_pattern(spec.name);
    const Id name = pattern ? 0 : pool_str2id(pool, spec.name.c_str(), 0);
    std::vector<Id> found;
    if (!pattern && name == 0) return found;
    const auto look_at = [&](const std::vector<Id>& solvables) {
        for (const Id id : solvables) {
            if (!channels.empty() && std::ranges::find(channels, channel(id)) == channels.end()) continue;
            if (state_->matching.matches(spec, id)) found.push_back(id);
        }
    };
    if (!pattern) {
        if (const auto of_name = state_->by_name.find(name); of_name != state_->by_name.end())
            look_at(of_name->second);
        return found;
    }
    for (const auto& [id, solvables] : state_->by_name)
        if (name_matches(spec.name, pool_id2str(pool, id))) look_at(solvables);
    std::ranges::sort(found);
    return found;
}

std::vector<std::string> PackagePool::names() const {
    std::set<std::string> names;
    for (const auto& [repo, list] : state_->lists)
        names.insert(list.names().begin(), list.names().end());
    return {names.begin(), names.end()};
}

std::size_t PackagePool::left_out() const {
    return state_->left_out;
}

std::size_t PackagePool::size() const {
    std::size_t count = 0;
    for (const auto& [repo, list] : state_->lists)
        if (repo != state_->pool->installed) count += list.size();
    return count;
}

} // namespace containerize::conda

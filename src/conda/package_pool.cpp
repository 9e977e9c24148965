#include "conda/package_pool.h"

#include "conda/libsolv.h"
#include "conda/repodata_index.h"
#include "util/log.h"
#include "util/mapped_file.h"
#include "util/text.h"

#include <algorithm>
#include <functional>
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

struct List {
    Repodata source;
    MappedFile json;
    RepodataIndex index;
    std::string base_url; ///< of archives, without '/' at the end
};

/// Fills one repository with records of a list.
class Reader {
public:
    Reader(Repo* repo, const List& list, std::unordered_map<Id, std::string_view>& records)
        : repo_(repo), pool_(repo->pool), list_(list), records_(records), data_(repo_add_repodata(repo, 0)) {}

    Status read(const std::set<std::string, std::less<>>& names) {
        struct Record {
            bool old_form;
            RecordPlace place;
        };
        const auto json = list_.json.text();
        std::vector<Record> wanted;
        for (const auto& name : names)
            for (const auto& place : list_.index.places(name)) {
                const auto text = json.substr(place.offset, place.length);
                const auto file = text.substr(0, text.find('"', 1));
                wanted.push_back({.old_form = file.ends_with(".tar.bz2"), .place = place});
            }
        // The order of packages is part of the result: as the list has them.
        std::ranges::sort(wanted, {},
                          [](const Record& one) { return std::pair(one.old_form, one.place.offset); });
        try {
            for (const auto& one : wanted)
                record(json.substr(one.place.offset, one.place.length));
        } catch (const simdjson::simdjson_error& error) {
            return damaged_list(list_.source, error.what());
        }
        repodata_internalize(data_);
        return {};
    }

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
            // A damaged document cannot go on; a record with an odd value can.
            if (error.error() != simdjson::INCORRECT_TYPE && error.error() != simdjson::NUMBER_ERROR) throw;
            return skip(file, error.what());
        }
        Solvable* solvable = pool_id2solvable(pool_, id);
        if (solvable->name == 0 || solvable->evr == 0 || !plain_ || !has_build_) {
            leave_out(id);
            return skip(file, "its name, version, build or a dependency is not one that a package can have");
        }
        solvable->provides = repo_addid_dep(repo_, solvable->provides,
                                            pool_rel2id(pool_, solvable->name, solvable->evr, REL_EQ, 1), 0);
        repodata_set_str(data_, id, SOLVABLE_MEDIAFILE, file.c_str());
        records_[id] = raw;
    }

    /// Its number is never used again: libsolv would take what it was told of this record for the next one's.
    void leave_out(Id id) { repo_free_solvable(repo_, id, 0); }

    void skip(std::string_view file, std::string_view why) const {
        log::detail(fmt::format("{}/{}: {} is left out: {}", list_.source.channel.name, list_.source.subdir,
                                file, why));
    }

    void fill(Id id, ondemand::object& object) {
        Solvable* solvable = pool_id2solvable(pool_, id);
        plain_ = true;
        has_build_ = false;
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
                    const Id dependency = dependency_id(one.get_string());
                    plain_ = plain_ && dependency != 0; // without it the package would not work
                    if (dependency != 0)
                        solvable->requires_offset =
                            repo_addid_dep(repo_, solvable->requires_offset, dependency, 0);
                }
            } else if (key == "constrains") {
                for (auto one : value.get_array())
                    if (const Id dependency = dependency_id(one.get_string()))
                        repodata_add_idarray(data_, id, SOLVABLE_CONSTRAINS, dependency);
            } else if (key == "track_features") {
                track_features(id, value);
            } else if (key == "timestamp") {
                const auto time = number(value);
                repodata_set_num(data_, id, SOLVABLE_BUILDTIME,
                                 time > 253'402'300'799ULL ? time / 1000 : time);
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
        for (std::size_t start = 0; (start = text.find_first_not_of(" ,\t", start)) != text.npos;) {
            const auto end = std::min(text.find_first_of(" ,\t", start), text.size());
            repodata_add_idarray(data_, id, SOLVABLE_TRACK_FEATURES,
                                 text_id(text.substr(start, end - start)));
            start = end;
        }
    }

    static std::uint64_t number(ondemand::value value) {
        if (value.type() != ondemand::json_type::number) return 0;
        const double as_double = value.get_double();
        return as_double >= 0 && as_double < 1e18 ? static_cast<std::uint64_t>(as_double) : 0;
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
    /// 0 for what can be none. libsolv goes down one level for each bracket, and messages show what it is.
    Id dependency_id(std::string_view text) {
        constexpr std::size_t longest = 4096;
        const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7F; };
        if (text.size() > longest || std::ranges::any_of(text, is_control)) return 0;
        // It may hold several, and libsolv finds them where we would not.
        if (text.find('^') != text.npos && !is_harmless_expression(text)) return 0;
        // libsolv's own parser drops what stands in brackets into the version.
        if (text.find('[') != text.npos) {
            const auto spec = parse_match_spec(text, UnknownKeys::ignored);
            if (!spec) return 0;
            return pool_conda_matchspec(pool_, c_string(without_brackets(*spec)));
        }
        return pool_conda_matchspec(pool_, c_string(text));
    }
    static std::string without_brackets(const MatchSpec& spec) {
        return spec.name +
               (spec.version ? " " + spec.version->text()
                : spec.build ? " *"
                             : "") +
               (spec.build ? " " + spec.build->text() : "");
    }

    Repo* repo_;
    Pool* pool_;
    const List& list_;
    std::unordered_map<Id, std::string_view>& records_;
    ::Repodata* data_;
    ondemand::parser parser_;
    bool plain_ = true; ///< the record's name, version, build and dependencies can be what they say
    bool has_build_ = false;
    std::string buffer_, c_string_;
};

/// CEP 15: archives may lie elsewhere than the list. Only the short object "info" is looked at.
std::string base_url_of(std::string_view json, const Repodata& source) {
    std::string standard = source.channel.url + "/" + source.subdir;
    try {
        ondemand::parser parser;
        // It comes first wherever it comes at all: a package could have that name, too.
        const auto info = json.substr(0, 200).find("\"info\"");
        const bool first =
            info != json.npos && json.substr(0, info).find_first_not_of(" \t\r\n{") == json.npos;
        const auto open = first ? json.find('{', info) : json.npos;
        const auto close = open == json.npos ? json.npos : json.find('}', open);
        if (close == json.npos) return standard;
        const simdjson::padded_string text(json.substr(open, close - open + 1));
        auto document = parser.iterate(text);
        std::string_view base;
        if (document.find_field_unordered("base_url").get(base) != simdjson::SUCCESS || base.empty())
            return standard;
        std::string url(base);
        while (url.ends_with('/'))
            url.pop_back();
        if (url.find("://") != std::string::npos) return url;
        // Relative to the list's own address.
        if (url.starts_with("./")) url.erase(0, 2);
        return url == "." ? standard : standard + "/" + url;
    } catch (const simdjson::simdjson_error&) {
        return standard;
    }
}

/// What libsolv would take for the pattern, and perhaps more: in a glob, it leaves some of a regular
/// expression's characters their meaning.
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

} // namespace

struct PackagePool::State {
    Pool* pool = pool_create();
    std::map<const Repo*, List> lists;
    Repo* of_machine = nullptr;
    std::unordered_map<Id, std::string> channels_of_installed;
    std::unordered_map<Id, std::string_view> records; ///< the text of each, in a list's
    std::unordered_map<Id, std::vector<Id>> by_name;  ///< solvables of channels

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { pool_free(pool); }

    Result<Repo*> open_list(const Repodata& source);
    [[nodiscard]] std::set<std::string, std::less<>> reach(const std::vector<std::string>& wanted) const;
    Status read_records(const std::set<std::string, std::less<>>& names);
    void note_channels_of_installed();
    void add_machine(const std::vector<VirtualPackage>& machine);
};

Result<Repo*> PackagePool::State::open_list(const Repodata& source) {
    auto json = source.in_cache ? MappedFile::open(source.json) : MappedFile::copy(source.json);
    if (!json) return fail(std::move(json.error()));
    auto index = RepodataIndex::of(source, json->text());
    if (!index) return fail(std::move(index.error()));
    Repo* repo = repo_create(pool, (source.channel.url + "/" + source.subdir).c_str());
    repo->priority = source.priority;
    auto base_url = base_url_of(json->text(), source);
    lists.emplace(repo, List{.source = source,
                             .json = std::move(*json),
                             .index = std::move(*index),
                             .base_url = std::move(base_url)});
    return repo;
}

// Those names, and all that what bears them can need, over any number of steps.
std::set<std::string, std::less<>> PackagePool::State::reach(const std::vector<std::string>& wanted) const {
    std::set<std::string, std::less<>> reached;
    std::vector<std::string> next;
    const auto add = [&](std::string_view name) {
        if (!reached.contains(name)) next.emplace_back(*reached.emplace(name).first);
    };
    std::set<std::string, std::less<>> patterns; // as a rule none, and many records can need the same
    const auto add_all = [&](std::string_view name) {
        if (!is_name_pattern(name)) return add(name);
        if (!patterns.emplace(name).second) return;
        const auto fits = names_that_may_match(name);
        for (const auto& [repo, list] : lists)
            for (const auto one : list.index.names())
                if (fits(lower(one))) add(one);
    };
    for (const auto& name : wanted)
        add_all(name);
    while (!next.empty()) {
        const auto name = std::move(next.back());
        next.pop_back();
        for (const auto& [repo, list] : lists)
            for (const auto need : list.index.needs(name))
                add_all(need);
    }
    return reached;
}

Status PackagePool::State::read_records(const std::set<std::string, std::less<>>& names) {
    for (int i = 1; i < pool->nrepos; ++i) {
        Repo* repo = pool->repos[i];
        if (auto read = Reader(repo, lists.at(repo), records).read(names); !read) return read;
    }
    return {};
}

void PackagePool::State::note_channels_of_installed() {
    Id id = 0;
    const Solvable* solvable = nullptr;
    FOR_REPO_SOLVABLES(pool->installed, id, solvable) {
        const auto entry = nlohmann::json::parse(records.at(id), nullptr, false);
        channels_of_installed[id] = entry.is_object() ? entry.value("channel", "") : "";
    }
}

// Not as libsolv's installed packages: for those it looks at every dependency of every candidate once more.
void PackagePool::State::add_machine(const std::vector<VirtualPackage>& machine) {
    Repo* repo = repo_create(pool, "machine");
    ::Repodata* data = repo_add_repodata(repo, 0);
    for (const auto& package : machine) {
        const Id id = repo_add_solvable(repo);
        Solvable* solvable = pool_id2solvable(pool, id);
        solvable->name = pool_str2id(pool, package.name.c_str(), 1);
        solvable->evr = pool_str2id(pool, package.version.c_str(), 1);
        solvable->provides =
            repo_addid_dep(repo, 0, pool_rel2id(pool, solvable->name, solvable->evr, REL_EQ, 1), 0);
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
                                      const std::vector<VirtualPackage>& machine, const Repodata* installed) {
    auto state = std::make_unique<State>();
    pool_setdisttype(state->pool, DISTTYPE_CONDA);
    for (const auto& list : lists) {
        if (list.json.empty()) continue;
        if (const auto repo = state->open_list(list); !repo) return fail(Error(repo.error()));
    }
    if (installed != nullptr) {
        const auto repo = state->open_list(*installed);
        if (!repo) return fail(Error(repo.error()));
        pool_set_installed(state->pool, *repo);
        for (const auto name : state->lists.at(*repo).index.names())
            wanted.emplace_back(name);
    }
    if (auto read = state->read_records(state->reach(wanted)); !read) return fail(std::move(read.error()));
    if (installed != nullptr) state->note_channels_of_installed();
    for (Id id = 1; id < state->pool->nsolvables; ++id)
        if (const Solvable* solvable = pool_id2solvable(state->pool, id); solvable->repo != nullptr)
            state->by_name[solvable->name].push_back(id);
    state->add_machine(machine);
    return PackagePool(std::move(state));
}

Pool* PackagePool::pool() const {
    return state_->pool;
}

s_Repo* PackagePool::machine() const {
    return state_->of_machine;
}

Result<PackageRecord> PackagePool::record(Id solvable) const {
    const auto entry = nlohmann::json::parse(state_->records.at(solvable), nullptr, false);
    auto record = parse_record(entry);
    if (!record) {
        record.error().where = channel(solvable);
        return record;
    }
    const auto& list = state_->lists.at(pool_id2solvable(state_->pool, solvable)->repo);
    if (record->subdir.empty()) record->subdir = list.source.subdir;
    record->channel = list.source.channel.url;
    const char* file = pool_lookup_str(state_->pool, solvable, SOLVABLE_MEDIAFILE);
    record->file_name = file == nullptr ? "" : file;
    record->url = list.base_url + "/" + record->file_name;
    return record;
}

const std::string& PackagePool::channel(Id solvable) const {
    static const std::string none;
    if (const auto own = state_->channels_of_installed.find(solvable);
        own != state_->channels_of_installed.end())
        return own->second;
    const auto found = state_->lists.find(pool_id2solvable(state_->pool, solvable)->repo);
    return found == state_->lists.end() ? none : found->second.source.channel.url;
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
    // What most specs ask for can be told from libsolv's data; the rest needs the whole record.
    const bool simple = !spec.build_number && spec.subdir.empty() && spec.file_name.empty() &&
                        spec.md5.empty() && spec.sha256.empty() && spec.license.empty() &&
                        spec.license_family.empty() && spec.track_features.empty();
    PackageRecord short_record;
    const auto look_at = [&](const std::vector<Id>& solvables) {
        for (const Id id : solvables) {
            if (!channels.empty() && std::ranges::find(channels, channel(id)) == channels.end()) continue;
            if (!simple) {
                if (const auto whole = record(id); whole && spec.matches(*whole)) found.push_back(id);
                continue;
            }
            const Solvable* solvable = pool_id2solvable(pool, id);
            short_record.name = pool_id2str(pool, solvable->name);
            short_record.version = pool_id2str(pool, solvable->evr);
            const char* build = pool_lookup_str(pool, id, SOLVABLE_BUILDFLAVOR);
            short_record.build = build == nullptr ? "" : build;
            if (spec.matches(short_record)) found.push_back(id);
        }
    };
    if (!pattern) {
        if (const auto of_name = state_->by_name.find(name); of_name != state_->by_name.end())
            look_at(of_name->second);
        return found;
    }
    for (const auto& [id, solvables] : state_->by_name)
        look_at(solvables);
    std::ranges::sort(found);
    return found;
}

std::vector<std::string> PackagePool::names() const {
    std::set<std::string> names;
    for (const auto& [repo, list] : state_->lists)
        names.insert(list.index.names().begin(), list.index.names().end());
    return {names.begin(), names.end()};
}

std::size_t PackagePool::size() const {
    std::size_t count = 0;
    for (const auto& [repo, list] : state_->lists)
        if (repo != state_->pool->installed) count += list.index.records();
    return count;
}

} // namespace containerize::conda

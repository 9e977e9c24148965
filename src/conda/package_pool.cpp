#include "conda/package_pool.h"

#include "conda/libsolv.h"
#include "util/fd.h"
#include "util/filesystem.h"
#include "util/log.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <simdjson.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::conda {

namespace {

namespace ondemand = simdjson::ondemand;

/// Part of the cached form's name: goes up when what we put into it changes.
constexpr std::string_view form = "containerize-1";

/// A file mapped for reading: records are taken from it when they are wanted.
class Mapping {
public:
    static Result<Mapping> open(const fs::path& path) {
        const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        struct stat info {};
        if (!file || fstat(file.get(), &info) != 0)
            return fail_errno("cannot read a package list", path.string());
        Mapping mapping;
        mapping.size_ = static_cast<std::size_t>(info.st_size);
        if (mapping.size_ == 0) return mapping;
        void* address = mmap(nullptr, mapping.size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
        if (address == MAP_FAILED) return fail_errno("cannot read a package list", path.string());
        mapping.address_ = static_cast<const char*>(address);
        return mapping;
    }
    Mapping(Mapping&& other) noexcept
        : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(address_, other.address_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Mapping() {
        if (address_ != nullptr) munmap(const_cast<char*>(address_), size_);
    }
    [[nodiscard]] std::string_view text() const { return {address_, size_}; }

private:
    Mapping() = default;
    const char* address_ = nullptr;
    std::size_t size_ = 0;
};

struct List {
    Repodata source;
    Mapping json;
    std::string base_url; ///< of archives, without '/' at the end
};

/// Fills one repository from repodata.
class Parser {
public:
    Parser(Repo* repo, const List& list, Id offset_key, Id length_key)
        : repo_(repo), pool_(repo->pool), list_(list), offset_key_(offset_key), length_key_(length_key),
          data_(repo_add_repodata(repo, 0)) {}

    Status parse() {
        const auto text = list_.json.text();
        try {
            ondemand::parser parser(simdjson::SIMDJSON_MAXSIZE_BYTES);
            const simdjson::padded_string padded(text);
            base_ = padded.data();
            auto document = parser.iterate(padded);
            if (document.type() != ondemand::json_type::object) return broken("it is no JSON object");
            // In this order: a .conda hides the .tar.bz2 of the same name.
            for (const char* key : {"packages.conda", "packages"}) {
                document.rewind();
                auto packages = document.find_field_unordered(key);
                if (packages.error() == simdjson::NO_SUCH_FIELD) continue;
                for (auto field : packages.get_object())
                    package(std::string_view(field.unescaped_key()), field.value());
            }
        } catch (const simdjson::simdjson_error& error) {
            return broken(error.what());
        }
        repodata_internalize(data_);
        return {};
    }

private:
    std::unexpected<Error> broken(std::string why) const {
        return fail({.what = "a channel's package list is damaged",
                     .why = std::move(why),
                     .where = list_.source.channel.name + "/" + list_.source.subdir,
                     .hint = "Try again later, or tell the channel's maintainers."});
    }

    void package(std::string_view file, ondemand::value value) {
        const auto ending = file.ends_with(".conda") ? 6U : file.ends_with(".tar.bz2") ? 8U : 0U;
        if (ending == 0 || file.find('/') != file.npos || file.size() > 250)
            return skip(file, "its file name");
        const std::string stem(file.substr(0, file.size() - ending));
        if (ending == 6)
            conda_files_.insert(stem);
        else if (conda_files_.contains(stem))
            return;
        ondemand::object object;
        if (value.get_object().get(object) != simdjson::SUCCESS) return skip(file, "it is no object");
        const std::string_view raw = object.raw_json();
        object.reset();
        const Id id = repo_add_solvable(repo_);
        try {
            fill(id, object);
        } catch (const simdjson::simdjson_error& error) {
            repo_free_solvable(repo_, id, 1);
            // A damaged document cannot go on; a record with an odd value can.
            if (error.error() != simdjson::INCORRECT_TYPE && error.error() != simdjson::NUMBER_ERROR) throw;
            return skip(file, error.what());
        }
        Solvable* solvable = pool_id2solvable(pool_, id);
        if (solvable->name == 0 || solvable->evr == 0 || !plain_ || !has_build_) {
            repo_free_solvable(repo_, id, 1);
            return skip(file, "its name, version, build or a dependency is not one that a package can have");
        }
        solvable->provides = repo_addid_dep(repo_, solvable->provides,
                                            pool_rel2id(pool_, solvable->name, solvable->evr, REL_EQ, 1), 0);
        repodata_set_str(data_, id, SOLVABLE_MEDIAFILE, std::string(file).c_str());
        repodata_set_num(data_, id, offset_key_, static_cast<unsigned long long>(raw.data() - base_));
        repodata_set_num(data_, id, length_key_, raw.size());
    }

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
        buffer_ = text;
        return buffer_.c_str();
    }
    Id dependency_id(std::string_view text) {
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
    Id offset_key_, length_key_;
    ::Repodata* data_;
    const char* base_ = nullptr;
    bool plain_ = true; ///< the record's name, version, build and dependencies can be what they say
    bool has_build_ = false;
    std::unordered_set<std::string> conda_files_;
    std::string buffer_;
};

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

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

} // namespace

struct PackagePool::State {
    Pool* pool = pool_create();
    std::map<const Repo*, List> lists;
    Repo* of_machine = nullptr;
    std::unordered_map<Id, std::string> channels_of_installed;
    Id offset_key = 0, length_key = 0;
    std::unordered_map<Id, std::vector<Id>> by_name; ///< solvables of channels

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() { pool_free(pool); }

    Status add_list(const Repodata& source);
    bool read_cached(Repo* repo, const fs::path& file) const;
    void write_cached(Repo* repo, const fs::path& file) const;
    Status add_installed(const Repodata& source);
    void add_machine(const std::vector<VirtualPackage>& machine);
    [[nodiscard]] std::string_view raw(Id solvable) const;
};

bool PackagePool::State::read_cached(Repo* repo, const fs::path& file) const {
    struct stat info {};
    const Fd descriptor(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    // A file that others could have written is none of ours.
    if (!descriptor || fstat(descriptor.get(), &info) != 0 || info.st_uid != geteuid() ||
        (info.st_mode & 022U) != 0 || !S_ISREG(info.st_mode))
        return false;
    const File stream(fdopen(dup(descriptor.get()), "rb"), fclose);
    if (!stream || repo_add_solv(repo, stream.get(), 0) != 0) return false;
    // What the list says that it should have, the list of this length has.
    const Id last = repo->end - 1;
    return repo->nsolvables == 0 ||
           pool_lookup_num(pool, last, offset_key, 0) + pool_lookup_num(pool, last, length_key, 0) <=
               lists.at(repo).json.text().size();
}

void PackagePool::State::write_cached(Repo* repo, const fs::path& file) const {
    const fs::path temporary = file.string() + fmt::format(".{}", getpid());
    bool written = false;
    if (const File stream(fopen(temporary.c_str(), "wbex"), fclose); stream)
        written = repo_write(repo, stream.get()) == 0 && fflush(stream.get()) == 0;
    // Without it the next build parses again: no reason to fail this one.
    if (!written || rename(temporary.c_str(), file.c_str()) != 0) unlink(temporary.c_str());
}

Status PackagePool::State::add_list(const Repodata& source) {
    auto json = Mapping::open(source.json);
    if (!json) return fail(std::move(json.error()));
    Repo* repo = repo_create(pool, (source.channel.url + "/" + source.subdir).c_str());
    repo->priority = source.priority;
    List list{.source = source, .json = std::move(*json), .base_url = {}};
    list.base_url = base_url_of(list.json.text(), source);
    const auto& kept = lists.emplace(repo, std::move(list)).first->second;
    const fs::path cached = source.cache / (source.identity + "." + std::string(form) + ".solv");
    if (!source.cache.empty() && read_cached(repo, cached)) return {};
    repo_empty(repo, 1);
    if (auto parsed = Parser(repo, kept, offset_key, length_key).parse(); !parsed) return parsed;
    if (!source.cache.empty()) write_cached(repo, cached);
    return {};
}

Status PackagePool::State::add_installed(const Repodata& source) {
    if (auto added = add_list(source); !added) return added;
    Repo* repo = pool->repos[pool->nrepos - 1];
    pool_set_installed(pool, repo);
    Id id = 0;
    const Solvable* solvable = nullptr;
    FOR_REPO_SOLVABLES(repo, id, solvable) {
        const auto entry = nlohmann::json::parse(raw(id), nullptr, false);
        channels_of_installed[id] = entry.is_object() ? entry.value("channel", "") : "";
    }
    return {};
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

std::string_view PackagePool::State::raw(Id solvable) const {
    const auto found = lists.find(pool_id2solvable(pool, solvable)->repo);
    if (found == lists.end()) return {};
    const auto text = found->second.json.text();
    const auto offset = pool_lookup_num(pool, solvable, offset_key, 0);
    const auto length = pool_lookup_num(pool, solvable, length_key, 0);
    return offset > text.size() || length > text.size() - offset ? std::string_view()
                                                                 : text.substr(offset, length);
}

PackagePool::PackagePool(std::unique_ptr<State> state) : state_(std::move(state)) {}
PackagePool::PackagePool(PackagePool&&) noexcept = default;
PackagePool& PackagePool::operator=(PackagePool&&) noexcept = default;
PackagePool::~PackagePool() = default;

Result<PackagePool> PackagePool::load(const std::vector<Repodata>& lists,
                                      const std::vector<VirtualPackage>& machine, const Repodata* installed) {
    auto state = std::make_unique<State>();
    pool_setdisttype(state->pool, DISTTYPE_CONDA);
    state->offset_key = pool_str2id(state->pool, "containerize:offset", 1);
    state->length_key = pool_str2id(state->pool, "containerize:length", 1);
    for (const auto& list : lists)
        if (!list.json.empty())
            if (auto added = state->add_list(list); !added) return fail(std::move(added.error()));
    if (installed != nullptr)
        if (auto added = state->add_installed(*installed); !added) return fail(std::move(added.error()));
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
    const auto text = state_->raw(solvable);
    const auto entry = nlohmann::json::parse(text, nullptr, false);
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
    const bool pattern = spec.name.empty() || spec.name.find_first_of("*^") != std::string::npos;
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
    std::vector<std::string> names;
    for (const auto& [id, solvables] : state_->by_name)
        names.emplace_back(pool_id2str(state_->pool, id));
    std::ranges::sort(names);
    return names;
}

std::size_t PackagePool::size() const {
    std::size_t count = 0;
    for (const auto& [repo, list] : state_->lists)
        if (repo != state_->pool->installed) count += static_cast<std::size_t>(repo->nsolvables);
    return count;
}

} // namespace containerize::conda

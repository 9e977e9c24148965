#include "conda/package_list.h"

#include "conda/channel.h"
#include "conda/package_record.h"
#include "conda/repodata_file.h"
#include "core/text.h"
#include "core/url.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

namespace containerize::conda {

namespace {

namespace ondemand = simdjson::ondemand;

/// The URL that `text` means in a list at `directory`, without a final '/'; empty if it is none for a
/// download, or if a server refers to this machine's files.
std::string resolved(std::string_view text, const std::string& directory) {
    text = without_end_slash(text);
    // They would end up in lists and logs.
    if (std::ranges::any_of(text, [](unsigned char c) { return c <= 0x20 || c == 0x7F; })) return {};
    if (text.find("://") != text.npos) {
        const bool of_server = text.starts_with("https://") || text.starts_with("http://");
        const bool of_disk = text.starts_with("file://") && directory.starts_with("file://");
        return of_server || of_disk ? std::string(text) : std::string();
    }
    if (text.starts_with('/')) {
        if (text.starts_with("//")) return {};
        return directory.substr(0, directory.find('/', directory.find("://") + 3)) +
               std::string(without_end_slash(text));
    }
    if (text.starts_with("./")) text.remove_prefix(2);
    return text.empty() || text == "." ? directory : directory + "/" + std::string(text);
}

/// CEP 15: archives may be elsewhere than the list. Parses nothing but the small object "info".
std::string base_url_of(std::string_view list, const std::string& directory) {
    try {
        ondemand::parser parser;
        // Accept "info" only as the first key, where it is in practice: a package might be named so, too.
        const auto info = list.substr(0, 200).find("\"info\"");
        const bool first =
            info != list.npos && list.substr(0, info).find_first_not_of(" \t\r\n{") == list.npos;
        const auto open = first ? list.find('{', info) : list.npos;
        const auto close = open == list.npos ? list.npos : list.find('}', open);
        if (close == list.npos) return directory;
        const simdjson::padded_string text(list.substr(open, close - open + 1));
        auto document = parser.iterate(text);
        std::string_view base;
        if (document.find_field_unordered("base_url").get(base) != simdjson::SUCCESS) return directory;
        const auto url = resolved(base, directory);
        return url.empty() ? directory : url;
    } catch (const simdjson::simdjson_error&) {
        return directory;
    }
}

} // namespace

PackageList::PackageList(Repodata source)
    : source_(std::move(source)), base_url_(source_.channel.url + "/" + source_.subdir) {}

Result<PackageList> PackageList::open(const Repodata& source) {
    PackageList list(source);
    auto file = TRY(MappedFile::map(source.json));
    const auto json = file.text();
    if (source.sharded) {
        TRY(list.read_shard_index(json));
        return list;
    }
    auto index = TRY(RepodataIndex::of(source, json));
    list.base_url_ = base_url_of(json, list.base_url_);
    list.parts_.emplace("", Part{.json = json, .index = std::move(index)});
    list.file_ = std::move(file);
    return list;
}

Status PackageList::read_shard_index(std::string_view json) {
    const auto directory = base_url_;
    std::string base;
    std::string shards;
    try {
        ondemand::parser parser;
        auto document = parser.iterate(json.data(), json.size(), json.size() + MappedFile::padding);
        for (auto field : document.get_object()) {
            const std::string_view key = field.unescaped_key();
            auto value = field.value();
            if (key == "info") {
                for (auto one : value.get_object()) {
                    const std::string_view name = one.unescaped_key();
                    if (name == "base_url") base = std::string_view(one.value().get_string());
                    if (name == "shards_base_url") shards = std::string_view(one.value().get_string());
                }
            } else if (key == "shards") {
                for (auto one : value.get_object()) {
                    const std::string name(std::string_view(one.unescaped_key()));
                    const std::string_view digest = one.value().get_string();
                    if (!is_plain(name) || !is_hex(digest, 64))
                        return damaged_shards("it contains an invalid name or checksum");
                    digests_.insert_or_assign(name, std::string(digest));
                }
            } else if (key == "version" && value.get_int64() != 1) {
                return damaged_shards("its version is not known");
            }
        }
    } catch (const simdjson::simdjson_error& error) {
        return damaged_shards(error.what());
    }
    base_url_ = resolved(base, directory);
    shards_url_ = resolved(shards, directory);
    if (base_url_.empty() || shards_url_.empty() || shards_url_.starts_with("file:"))
        return damaged_shards("its base_url or shards_base_url is not an http or https URL");
    for (const auto& [name, digest] : digests_)
        shard_names_.emplace_back(name);
    return {};
}

const PackageList::Part* PackageList::part(std::string_view name) const {
    const auto found = parts_.find(source_.sharded ? name : std::string_view());
    return found == parts_.end() ? nullptr : &found->second;
}

const std::vector<std::string_view>& PackageList::names() const {
    return source_.sharded ? shard_names_ : parts_.begin()->second.index.names();
}

std::size_t PackageList::size() const {
    std::size_t size = 0;
    for (const auto& [name, one] : parts_)
        size += one.index.records();
    return size;
}

std::vector<std::string_view> PackageList::needs(std::string_view name) const {
    const auto* of_name = part(name);
    return of_name == nullptr ? std::vector<std::string_view>() : of_name->index.needs(name);
}

std::vector<std::string_view> PackageList::records(const Names& names) const {
    struct Record {
        bool old_form;
        std::string_view file;
        std::uint64_t offset;
        std::string_view text;
    };
    std::vector<Record> found;
    for (const auto& name : names) {
        const auto* of_name = part(name);
        if (of_name == nullptr) continue;
        for (const auto& place : of_name->index.places(name)) {
            const auto text = of_name->json.substr(place.offset, place.length);
            if (text.empty()) continue; // the cached index is damaged
            const auto file = text.substr(1, text.find('"', 1) - 1);
            found.push_back(
                {.old_form = file.ends_with(".tar.bz2"), .file = file, .offset = place.offset, .text = text});
        }
    }
    if (source_.sharded)
        std::ranges::sort(found, {}, [](const Record& one) { return std::pair(one.old_form, one.file); });
    else
        std::ranges::sort(found, {}, [](const Record& one) { return std::pair(one.old_form, one.offset); });
    std::vector<std::string_view> texts;
    std::ranges::transform(found, std::back_inserter(texts), &Record::text);
    return texts;
}

std::string_view PackageList::missing_shard(std::string_view name) const {
    const auto found = digests_.find(name);
    return found == digests_.end() || parts_.contains(name) ? std::string_view() : found->second;
}

std::vector<std::string> PackageList::shard_urls(std::string_view digest, const Config& config) const {
    return download_urls(fmt::format("{}/{}.msgpack.zst", shards_url_, digest), {source_.channel}, config);
}

bool PackageList::has_shards_elsewhere() const {
    return !(shards_url_ + "/").starts_with(source_.channel.url + "/");
}

std::unexpected<Error> PackageList::damaged_shards(std::string why) const {
    auto damaged = damaged_list(source_, std::move(why));
    damaged.error().hint += "\n" + std::string(hint_to_whole_list);
    return damaged;
}

Result<std::uint64_t> PackageList::add_shard(std::string_view name, std::string_view packed) {
    auto json = unpack_shard(packed);
    if (!json) return damaged_shards(fmt::format("the shard of {}: {}", name, json.error().why));
    const auto size = json->size();
    json->append(MappedFile::padding, '\0');
    const auto text = std::string_view(shards_.emplace_back(std::move(*json))).substr(0, size);
    auto source = source_;
    source.cache.clear(); // the index of a shard is made as fast as it could be read
    auto index = TRY(RepodataIndex::of(source, text));
    for (const auto other : index.names())
        if (other != name)
            return damaged_shards(fmt::format("the shard of {} has records of {}", name, other));
    parts_.emplace(name, Part{.json = text, .index = std::move(index)});
    return size;
}

} // namespace containerize::conda

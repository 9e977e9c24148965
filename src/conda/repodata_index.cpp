#include "conda/repodata_index.h"

#include "conda/cache_directory.h"
#include "conda/match_spec.h"
#include "conda/package_record.h"
#include "conda/repodata_state.h"
#include "core/filesystem.h"
#include "core/mapped_file.h"
#include "core/text.h"
#include "util/log.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>

namespace containerize::conda {

namespace {

namespace ondemand = simdjson::ondemand;

/// The first word of the header. Changes with the format.
constexpr std::string_view form = "containerize-index-2";

/// Detects index files damaged on disk. Other builds of the program may compute another value: they then make
/// the index again.
std::size_t checksum(std::string_view lines) {
    return std::hash<std::string_view>()(lines);
}

/// Reads the whole text once and extracts each record's name and dependencies.
class Indexer {
public:
    Indexer(const Repodata& list, std::string_view json) : list_(list), json_(json) {}

    Status run() {
        try {
            ondemand::parser parser(simdjson::SIMDJSON_MAXSIZE_BYTES);
            auto document = parser.iterate(json_.data(), json_.size(), json_.size() + MappedFile::padding);
            if (document.type() != ondemand::json_type::object)
                return damaged_list(list_, "it is not a JSON object");
            // In this order, because a .conda hides the .tar.bz2 of the same name.
            for (const char* key : {"packages.conda", "packages"}) {
                document.rewind();
                auto packages = document.find_field_unordered(key);
                if (packages.error() == simdjson::NO_SUCH_FIELD) continue;
                for (auto field : packages.get_object())
                    look_at(field.key().raw(), field.value());
            }
        } catch (const simdjson::simdjson_error& error) {
            return damaged_list(list_, error.what());
        }
        return {};
    }

    [[nodiscard]] std::string text() {
        std::vector<std::pair<std::string_view, const Package*>> sorted;
        for (auto& [name, package] : packages_) {
            std::ranges::sort(package.needs);
            const auto twice = std::ranges::unique(package.needs);
            package.needs.erase(twice.begin(), twice.end());
            sorted.emplace_back(name, &package);
        }
        std::ranges::sort(sorted);
        std::string lines;
        std::size_t records = 0;
        for (const auto& [name, package] : sorted) {
            lines += name;
            for (char before = '\t'; const auto need : package->needs) {
                lines += std::exchange(before, ' ');
                lines += needed_[need];
            }
            lines += package->needs.empty() ? "\t\t" : "\t";
            for (const auto& place : package->places)
                fmt::format_to(std::back_inserter(lines), "{} {} ", place.offset, place.length);
            lines.back() = '\n';
            records += package->places.size();
        }
        return fmt::format("{} {} {} {}\n", form, json_.size(), records, checksum(lines)) + lines;
    }

private:
    struct Package {
        std::vector<std::uint32_t> needs; ///< indices into needed_, possibly repeated
        std::vector<RecordPlace> places;
    };

    /// `key` points to the file name in the text.
    void look_at(const char* key, ondemand::value value) {
        const auto file = text_at(key);
        const auto ending = file.ends_with(".conda") ? 6U : file.ends_with(".tar.bz2") ? 8U : 0U;
        if (ending == 0 || file.find('/') != file.npos || file.size() > 250)
            return skip(file, "its file name is invalid");
        const auto stem = file.substr(0, file.size() - ending);
        if (ending == 6)
            conda_files_.insert(stem);
        else if (conda_files_.contains(stem))
            return;
        ondemand::object object;
        if (value.get_object().get(object) != simdjson::SUCCESS)
            return skip(file, "its entry is not an object");
        const std::string_view raw = object.raw_json();
        object.reset();
        const auto start = static_cast<std::size_t>(key - json_.data()) - 1;
        const auto end = static_cast<std::size_t>(raw.data() - json_.data()) + raw.size();
        try {
            add(file, object, {.offset = start, .length = end - start});
        } catch (const simdjson::simdjson_error& error) {
            // Skip a record with values of wrong types; a damaged document is an error.
            if (error.error() != simdjson::INCORRECT_TYPE) throw;
            skip(file, error.what());
        }
    }

    void add(std::string_view file, ondemand::object& object, RecordPlace place) {
        std::string_view name;
        std::vector<std::uint32_t> needs;
        for (auto field : object) {
            const ondemand::raw_json_string key = field.key();
            if (key == "name")
                name = text_at(field.value().get_raw_json_string().raw());
            else if (key == "depends")
                for (auto one : field.value().get_array())
                    needs.push_back(number_of(text_at(one.get_raw_json_string().raw())));
        }
        if (!is_plain(name)) return skip(file, "its name is invalid");
        auto& package = packages_[name];
        package.places.push_back(place);
        for (const auto need : needs)
            if (need != none) package.needs.push_back(need);
    }

    /// The index in needed_ of the name in a dependency.
    std::uint32_t number_of(std::string_view dependency) {
        const auto [known, is_new] = of_dependency_.emplace(dependency, none);
        if (!is_new) return known->second;
        const auto name = name_of_dependency(dependency);
        if (!is_name_pattern(name) && !is_plain(name)) return none; // no package has such a name
        if (name.empty() || name.size() > longest_name || name.find_first_of(" \t\n") != name.npos)
            return none;
        const auto [number, is_new_name] = numbers_.emplace(name, static_cast<std::uint32_t>(needed_.size()));
        if (is_new_name) needed_.push_back(name);
        return known->second = number->second;
    }

    /// The JSON string that starts there. The parser has already checked that it ends.
    std::string_view text_at(const char* start) {
        const char* end = start;
        bool escaped = false;
        for (const char* last = json_.data() + json_.size(); end < last && *end != '"'; ++end)
            if (*end == '\\') {
                escaped = true;
                ++end;
            }
        if (!escaped) return {start, end};
        const auto decoded = nlohmann::json::parse(start - 1, end + 1, nullptr, false);
        return unescaped_.emplace_back(decoded.is_string() ? decoded.get<std::string>() : "");
    }

    void skip(std::string_view file, std::string_view why) const {
        log::detail(fmt::format("{}/{}: {} is ignored: {}", list_.channel.name, list_.subdir, file, why));
    }

    static constexpr std::uint32_t none = ~0U;
    static constexpr std::size_t longest_name = 200;

    const Repodata& list_;
    std::string_view json_;
    std::unordered_map<std::string_view, Package> packages_;
    std::unordered_set<std::string_view> conda_files_; ///< without extension
    std::unordered_map<std::string_view, std::uint32_t> of_dependency_;
    std::unordered_map<std::string, std::uint32_t> numbers_;
    std::vector<std::string> needed_;
    std::deque<std::string> unescaped_; ///< strings that have escapes in the text
};

std::size_t number_in(std::string_view text) {
    return to_number<std::size_t>(text).value_or(std::string_view::npos);
}

/// Returns the text before `delimiter`, or all of it, and removes it with the delimiter.
std::string_view take(std::string_view& text, char delimiter) {
    const auto end = text.find(delimiter);
    const auto part = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    return part;
}

/// Reads a cached index; empty if others could have written it.
std::string read_kept(const fs::path& file) {
    const auto own = open_own(file);
    if (!own) return {};
    const auto mapped = MappedFile::map(own);
    return mapped ? std::string(mapped->text()) : std::string();
}

} // namespace

Result<RepodataIndex> RepodataIndex::of(const Repodata& list, std::string_view json) {
    const fs::path kept =
        list.cache.empty() ? fs::path() : list.cache / (list.identity + "." + std::string(form));
    if (!kept.empty())
        if (auto index = parse(read_kept(kept), json.size())) {
            mark_used(kept);
            return std::move(*index);
        }
    Indexer indexer(list, json);
    TRY(indexer.run());
    auto text = indexer.text();
    // Without a cached index the next build makes it again, so failure is harmless.
    if (!kept.empty()) {
        const auto written = write_own(kept, text);
        if (!written) log::detail(to_string(written.error()));
    }
    auto index = parse(std::move(text), json.size());
    if (!index) return damaged_list(list, "it contains invalid names");
    return std::move(*index);
}

std::optional<RepodataIndex> RepodataIndex::parse(std::string text, std::size_t json_size) {
    RepodataIndex index;
    index.text_ = std::make_unique<const std::string>(std::move(text));
    std::string_view rest = *index.text_;
    std::string_view header = take(rest, '\n');
    if (take(header, ' ') != form || number_in(take(header, ' ')) != json_size) return std::nullopt;
    index.records_ = number_in(take(header, ' '));
    if (number_in(header) != checksum(rest)) return std::nullopt;
    index.json_size_ = json_size;
    while (!rest.empty()) {
        auto line = take(rest, '\n');
        if (line.find('\t') == line.npos) return std::nullopt;
        index.names_.push_back(take(line, '\t'));
    }
    return std::ranges::is_sorted(index.names_) ? std::optional(std::move(index)) : std::nullopt;
}

std::string_view RepodataIndex::line(std::string_view name) const {
    const auto found = std::ranges::lower_bound(names_, name);
    if (found == names_.end() || *found != name) return {};
    const auto start = static_cast<std::size_t>(found->data() - text_->data()) + name.size() + 1;
    return std::string_view(*text_).substr(start, text_->find('\n', start) - start);
}

std::vector<std::string_view> RepodataIndex::needs(std::string_view name) const {
    auto of_name = line(name);
    auto listed = take(of_name, '\t');
    std::vector<std::string_view> needs;
    while (!listed.empty())
        needs.push_back(take(listed, ' '));
    return needs;
}

std::vector<RecordPlace> RepodataIndex::places(std::string_view name) const {
    auto listed = line(name);
    take(listed, '\t');
    std::vector<RecordPlace> places;
    while (!listed.empty()) {
        const auto offset = number_in(take(listed, ' '));
        const auto length = number_in(take(listed, ' '));
        if (offset < json_size_ && length <= json_size_ - offset)
            places.push_back({.offset = offset, .length = length});
    }
    return places;
}

std::string name_of_dependency(std::string_view text) {
    if (text.find('[') != text.npos) {
        const auto spec = parse_match_spec(text, UnknownKeys::ignored);
        return spec ? spec->name : std::string();
    }
    // As in libsolv: the part before ':' is a channel, and case does not matter.
    if (const auto colon = text.rfind(':'); colon != text.npos) text.remove_prefix(colon + 1);
    return lower(text.substr(0, text.find_first_of(" =<>!~")));
}

std::unexpected<Error> damaged_list(const Repodata& list, std::string why) {
    return fail({.what = "a channel's package list is damaged",
                 .why = std::move(why),
                 .where = list.channel.name + "/" + list.subdir,
                 .hint = "Try again later, or tell the channel's maintainers."});
}

} // namespace containerize::conda

// Package lists: the index, both when it is made and when it is read again, must answer what another parser
// finds in the list.
#include "conda/repodata.h"

#include "conda/match_spec.h"
#include "conda/package_record.h"
#include "conda/repodata_index.h"
#include "core/mapped_file.h"
#include "harness.h"
#include "input_file.h"

#include <map>
#include <set>
#include <string>

using namespace containerize;
using json = nlohmann::ordered_json; // keeps the order: a package's first file counts

namespace {

/// What a list says about a name.
struct OfName {
    std::set<std::string> needs, files;
    bool operator==(const OfName&) const = default;
};
using Answers = std::map<std::string, OfName, std::less<>>;

Answers answers_of(const conda::RepodataIndex& index, std::string_view list) {
    Answers answers;
    for (const auto name : index.names()) {
        auto& of_name = answers[std::string(name)];
        for (const auto need : index.needs(name))
            of_name.needs.emplace(need);
        for (const auto& place : index.places(name)) {
            const auto record = json::parse("{" + std::string(list.substr(place.offset, place.length)) + "}");
            fuzz::require(record.size() == 1 && record.begin()->at("name").get<std::string>() == name);
            of_name.files.insert(record.begin().key());
        }
    }
    return answers;
}

/// Whether no object contains a key twice: parsers differ in which of the two they use.
bool has_plain_keys(std::string_view list) {
    std::vector<std::set<std::string>> objects;
    bool plain = true;
    const auto parsed = json::parse(
        list,
        [&](int, json::parse_event_t event, json& value) {
            if (event == json::parse_event_t::object_start) objects.emplace_back();
            if (event == json::parse_event_t::object_end) objects.pop_back();
            if (event == json::parse_event_t::key)
                plain = plain && objects.back().insert(value.get<std::string>()).second;
            return true;
        },
        false);
    return plain && !parsed.is_discarded();
}

/// Whether the index contains this record: only if its parts have the right types.
bool is_record(const std::string& file, const json& entry) {
    if (file.find('/') != std::string::npos || file.size() > 250 || !entry.is_object()) return false;
    const auto name = entry.find("name");
    if (name == entry.end() || !name->is_string() || !conda::is_plain(name->get<std::string>())) return false;
    const auto depends = entry.find("depends");
    return depends == entry.end() || (depends->is_array() && std::ranges::all_of(*depends, &json::is_string));
}

void add(const json& entry, const std::string& file, Answers& answers) {
    auto& of_name = answers[entry.at("name").get<std::string>()];
    of_name.files.insert(file);
    for (const auto& one : entry.value("depends", json::array())) {
        const auto need = conda::name_of_dependency(one.get<std::string>());
        const bool counts = conda::is_name_pattern(need) || conda::is_plain(need);
        if (counts && !need.empty() && need.size() <= 200 && need.find_first_of(" \t\n") == need.npos)
            of_name.needs.insert(need);
    }
}

Answers answers_of(const json& list) {
    Answers answers;
    std::set<std::string> conda_files;
    for (const std::string_view key : {"packages.conda", "packages"}) {
        const auto packages = list.find(key);
        if (packages == list.end()) continue;
        for (const auto& [file, entry] : packages->items()) {
            const bool is_conda = file.ends_with(".conda");
            if (!is_conda && !file.ends_with(".tar.bz2")) continue;
            const auto stem = file.substr(0, file.size() - (is_conda ? 6 : 8));
            if (is_conda && file.find('/') == file.npos && file.size() <= 250) conda_files.insert(stem);
            if (!is_conda && conda_files.contains(stem)) continue;
            if (is_record(file, entry)) add(entry, file, answers);
        }
    }
    return answers;
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto list = fuzz::text_of(data, size);
    const auto cache = fuzz::input_directory().path() / "cache";
    fs::remove_all(cache);
    fs::create_directory(cache);
    const auto json_file = OpenFile::open(fuzz::input_file("repodata.json", list));
    const auto mapped = MappedFile::map(*json_file);
    fuzz::require(mapped.has_value());
    conda::Repodata source;
    source.channel = {.name = "c", .url = "https://h/c", .mirrors = {}};
    source.subdir = "linux-64";
    source.identity = "0123";
    source.cache = cache;
    const auto made = conda::RepodataIndex::of(source, mapped->text());
    if (!fuzz::good(made)) return 0;
    const auto read = conda::RepodataIndex::of(source, mapped->text());
    fuzz::require(fuzz::good(read) && read->records() == made->records() && read->names() == made->names());
    if (!has_plain_keys(list)) return 0;
    const auto answers = answers_of(*read, list);
    fuzz::require(answers == answers_of(*made, list) &&
                  answers == answers_of(json::parse(list, nullptr, false)));
    return 0;
}

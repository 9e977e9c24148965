#include "conda/package_record.h"

#include "core/text.h"
#include "util/json.h"

#include <algorithm>
#include <array>
#include <utility>

namespace containerize::conda {

namespace {

using nlohmann::json;

/// The year 9999 in seconds: larger timestamps are in milliseconds.
constexpr std::uint64_t largest_seconds = 253'402'300'799;

std::uint64_t number_of(const json& entry, const char* key) {
    const auto found = entry.find(key);
    if (found == entry.end()) return 0;
    if (found->is_number_unsigned()) return found->get<std::uint64_t>();
    // Some channels have floating-point numbers.
    if (found->is_number_float() && found->get<double>() >= 0 && found->get<double>() < 1e18)
        return static_cast<std::uint64_t>(found->get<double>());
    return 0;
}

/// Reads a list of strings, or one string with several words.
std::vector<std::string> list_of(const json& entry, const char* key) {
    std::vector<std::string> list;
    const auto found = entry.find(key);
    if (found == entry.end()) return list;
    if (found->is_string()) return words_in(found->get<std::string>(), " ,");
    if (found->is_array())
        for (const auto& one : *found)
            if (one.is_string()) list.push_back(one.get<std::string>());
    return list;
}

Noarch noarch_of(const json& entry) {
    const auto found = entry.find("noarch");
    if (found == entry.end()) return Noarch::no;
    if (found->is_boolean()) return found->get<bool>() ? Noarch::generic : Noarch::no;
    if (!found->is_string()) return Noarch::no;
    return found->get<std::string>() == "python" ? Noarch::python : Noarch::generic;
}

} // namespace

bool is_plain(std::string_view text) {
    return !text.empty() && text.size() < 200 && text.front() != '.' && text.front() != '-' &&
           std::ranges::all_of(text,
                               [](unsigned char c) { return c > 0x20 && c < 0x7F && c != '/' && c != '\\'; });
}

Result<PackageRecord> parse_record(const json& entry) {
    if (!entry.is_object()) return fail({.what = "a package's entry is not an object"});
    PackageRecord record;
    record.name = text_of(entry, "name");
    record.version = text_of(entry, "version");
    record.build = text_of(entry, "build");
    if (record.build.empty()) record.build = text_of(entry, "build_string");
    for (const auto& [key, value] : {std::pair{"name", &record.name}, std::pair{"version", &record.version},
                                     std::pair{"build", &record.build}})
        if (!is_plain(*value))
            return fail({.what = "a package's " + std::string(key) + " is invalid",
                         .why = "'" + value->substr(0, 80) + "'"});
    record.build_number = number_of(entry, "build_number");
    record.subdir = text_of(entry, "subdir");
    record.sha256 = text_of(entry, "sha256");
    record.md5 = text_of(entry, "md5");
    for (const auto& [kind, value, digits] :
         {std::tuple{"a sha256", &record.sha256, 64U}, std::tuple{"an MD5", &record.md5, 32U}})
        if (!value->empty() && !is_hex(*value, digits))
            return fail({.what = record.name + "'s checksum is not " + kind,
                         .why = "'" + value->substr(0, 80) + "'"});
    record.size = number_of(entry, "size");
    record.timestamp = number_of(entry, "timestamp");
    if (record.timestamp <= largest_seconds) record.timestamp *= 1000;
    record.noarch = noarch_of(entry);
    record.depends = list_of(entry, "depends");
    if (!entry.contains("depends")) record.depends = list_of(entry, "requires");
    record.constrains = list_of(entry, "constrains");
    record.track_features = list_of(entry, "track_features");
    record.features = text_of(entry, "features");
    record.license = text_of(entry, "license");
    record.license_family = text_of(entry, "license_family");
    record.python_site_packages_path = text_of(entry, "python_site_packages_path");
    return record;
}

json to_json(const PackageRecord& record) {
    json entry = {{"name", record.name},
                  {"version", record.version},
                  {"build", record.build},
                  {"build_string", record.build},
                  {"build_number", record.build_number},
                  {"depends", record.depends},
                  {"constrains", record.constrains}};
    const auto texts = std::to_array<std::pair<const char*, const std::string*>>({
        {"fn", &record.file_name},
        {"subdir", &record.subdir},
        {"channel", &record.channel},
        {"url", &record.url},
        {"sha256", &record.sha256},
        {"md5", &record.md5},
        {"features", &record.features},
        {"license", &record.license},
        {"license_family", &record.license_family},
        {"python_site_packages_path", &record.python_site_packages_path},
    });
    for (const auto& [key, value] : texts)
        if (!value->empty()) entry[key] = *value;
    if (record.size != 0) entry["size"] = record.size;
    if (record.timestamp != 0)
        entry["timestamp"] = record.timestamp > largest_seconds ? record.timestamp : record.timestamp / 1000;
    if (record.noarch != Noarch::no) entry["noarch"] = record.noarch == Noarch::python ? "python" : "generic";
    if (!record.track_features.empty()) entry["track_features"] = joined(record.track_features, " ");
    return entry;
}

} // namespace containerize::conda

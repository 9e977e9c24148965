// Match specs of users and packages. Those that libsolv knows as well must mean the same to it.
#include "conda/match_spec.h"

#include "harness.h"
#include "libsolv_opinion.h"

using namespace containerize;
using conda::UnknownKeys;

namespace {

/// "name", "name >=1", "name >=1 build": brackets, channels and features are only ours.
bool is_common_form(std::string_view text, const conda::MatchSpec& spec) {
    const auto rest = text.substr(std::min(spec.name.size(), text.size()));
    const bool plain = rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.<>=!|, ") == rest.npos;
    return plain && text.starts_with(spec.name) && !conda::is_name_pattern(spec.name) && spec.url.empty() &&
           (rest.empty() || rest.starts_with(' '));
}

void compare(std::string_view text, const conda::MatchSpec& spec, const conda::PackageRecord& record) {
    const auto version = conda::Version::parse(record.version);
    if (!version || !is_common_form(text, spec)) return;
    if (!conda::is_plain(record.name) || !conda::is_plain(record.build)) return; // in no list
    if (spec.version && fuzz::in_dispute(*version, spec.version->text())) return;
    fuzz::PackageOfLibsolv package(record.name, record.version, record.build);
    fuzz::require(package.matches(std::string(text)) == spec.matches(record));
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 2);
    const auto spec = conda::parse_match_spec(parts[0]);
    [[maybe_unused]] const bool lenient =
        fuzz::good_input(conda::parse_match_spec(parts[0], UnknownKeys::ignored));
    if (!fuzz::good_input(spec)) return 0;
    if (const auto file = conda::parse_file_name(parts[1])) {
        conda::PackageRecord record;
        record.name = file->name;
        record.version = file->version;
        record.build = file->build;
        record.file_name = parts[1];
        compare(parts[0], *spec, record);
    }
    if (!spec->url.empty()) return 0; // to_string() shows only its package
    const auto again = conda::parse_match_spec(spec->to_string());
    fuzz::require(again && again->to_string() == spec->to_string());
    return 0;
}

// What users and packages ask for.
#include "conda/match_spec.h"

#include "harness.h"

using namespace containerize;
using conda::UnknownKeys;

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
        [[maybe_unused]] const bool matches = spec->matches(record);
    }
    // Of URLs, to_string() shows no more than the package, and no login.
    if (!spec->url.empty() || spec->channel.find(':') != std::string::npos) return 0;
    const auto again = conda::parse_match_spec(spec->to_string());
    fuzz::require(again && again->to_string() == spec->to_string());
    return 0;
}

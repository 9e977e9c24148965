// What a package says about itself: index.json, paths.json, and the files that older packages have instead.
#include "conda/package_info.h"

#include "harness.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::array names = {"index.json", "paths.json", "files", "has_prefix", "no_link", "link.json"};
    const auto parts = fuzz::parts_of(fuzz::text_of(data, size), names.size());
    std::map<std::string, std::string> files;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (!parts[i].empty()) files.emplace(names[i], parts[i]);
    const auto info = conda::parse_package_info(files, "package");
    if (!fuzz::good(info)) return 0;
    for (const auto& entry : info->paths)
        fuzz::require(!entry.path.starts_with('/') && !entry.path.starts_with("../"));
    const auto json = conda::to_json(info->record);
    const auto again = conda::parse_record(json);
    fuzz::require(again && conda::to_json(*again) == json);
    return 0;
}

// The index of a package list in the cache, with arbitrary lines, and the list to which its offsets refer.
#include "conda/repodata_index.h"

#include "conda/package_pool.h"
#include "core/mapped_file.h"
#include "harness.h"
#include "input_file.h"

#include <functional>
#include <string>

#include <fmt/format.h>

using namespace containerize;

namespace {

/// Adds the header that is valid for these lines, which a fuzzer would hardly find.
std::string index_of(std::string_view lines, std::size_t list_size) {
    return fmt::format("containerize-index-2 {} 1 {}\n", list_size, std::hash<std::string_view>()(lines)) +
           std::string(lines);
}

void read_all(const conda::RepodataIndex& index, std::size_t list_size) {
    for (const auto name : index.names()) {
        [[maybe_unused]] const auto needs = index.needs(name);
        for (const auto& place : index.places(name))
            fuzz::require(place.offset <= list_size && place.length <= list_size - place.offset);
    }
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 2);
    const auto list = parts[1];
    const auto cache = fuzz::input_directory().path() / "cache";
    fuzz::input_file("cache/0123.containerize-index-2", index_of(parts[0], list.size()));
    conda::Repodata source;
    source.channel = {.name = "c", .url = "https://h/c", .mirrors = {}};
    source.subdir = "linux-64";
    source.json = OpenFile::open(fuzz::input_file("repodata.json", list)).value();
    source.identity = "0123";
    source.cache = cache;
    const auto mapped = MappedFile::map(source.json);
    fuzz::require(mapped.has_value());
    const auto index = conda::RepodataIndex::of(source, mapped->text());
    if (fuzz::good(index)) read_all(*index, list.size());
    const auto pool = conda::PackagePool::load({source}, {"a", "lib*"}, {});
    if (!fuzz::good(pool)) return 0;
    const auto spec = conda::parse_match_spec("*");
    for (const auto id : pool->matching(*spec, {})) {
        [[maybe_unused]] const auto record = pool->record(id);
        [[maybe_unused]] const auto version = pool->version(id);
    }
    return 0;
}

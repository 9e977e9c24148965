// The index of a sharded package list, and a shard, as MessagePack.
#include "conda/msgpack.h"
#include "conda/package_list.h"
#include "harness.h"
#include "input_file.h"

#include <string>

#include <zstd.h>

#include <nlohmann/json.hpp>

using namespace containerize;

namespace {

constexpr std::size_t largest = 1U << 20U;

std::string zstd(std::string_view text) {
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
    return packed;
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 2);
    for (const auto part : parts)
        if (const auto json = conda::json_of_msgpack(part, largest); fuzz::good(json))
            fuzz::require(nlohmann::json::accept(*json));
    const auto index = conda::json_of_msgpack(parts[0], largest);
    if (!index) return 0;
    conda::Repodata source;
    source.channel = {.name = "c", .url = "https://h/c", .mirrors = {"https://h/c"}};
    source.subdir = "linux-64";
    source.json = OpenFile::open(fuzz::input_file("index.json", *index)).value();
    source.sharded = true;
    auto list = conda::PackageList::open(source);
    if (!fuzz::good(list)) return 0;
    for (const auto name : list->names()) {
        const std::string digest(list->missing_shard(name));
        fuzz::require(digest.size() == 64);
        for (const auto& url : list->shard_urls(digest, {}))
            fuzz::require(url.ends_with("/" + digest + ".msgpack.zst"));
        if (!fuzz::good(list->add_shard(name, zstd(parts[1])))) continue;
        fuzz::require(list->missing_shard(name).empty());
        [[maybe_unused]] const auto needs = list->needs(name);
        for (const auto text : list->records({std::string(name)}))
            fuzz::require(text.starts_with('"'));
    }
    return 0;
}

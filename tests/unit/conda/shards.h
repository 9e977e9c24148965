// A channel with shards, written from records.
#pragma once

#include "../temporary.h"
#include "util/digest.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <zstd.h>

#include <nlohmann/json.hpp>

namespace containerize::test {

inline std::string zstd(std::string_view text) {
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
    return packed;
}

/// Bytes, as MessagePack has them, of hexadecimal digits.
inline nlohmann::json bytes_of(const std::string& digits) {
    std::vector<std::uint8_t> bytes;
    for (std::size_t at = 0; at < digits.size(); at += 2)
        bytes.push_back(static_cast<std::uint8_t>(std::stoul(digits.substr(at, 2), nullptr, 16)));
    return nlohmann::json::binary(std::move(bytes));
}

inline std::string msgpack(const nlohmann::json& value) {
    const auto bytes = nlohmann::json::to_msgpack(value);
    return {bytes.begin(), bytes.end()};
}

/// The shards of a subdir.
class Shards {
public:
    /// `repodata` has "packages" and "packages.conda" as a whole list.
    explicit Shards(const nlohmann::json& repodata) {
        for (const char* key : {"packages", "packages.conda"}) {
            const auto packages = repodata.value(key, nlohmann::json::object());
            for (const auto& [file, original] : packages.items()) {
                auto record = original;
                for (const char* checksum : {"sha256", "md5"})
                    if (record.contains(checksum)) record[checksum] = bytes_of(record[checksum]);
                auto& shard = contents[record.at("name")];
                for (const char* other : {"packages", "packages.conda"})
                    shard.emplace(other, nlohmann::json::object());
                shard[key][file] = record;
            }
        }
    }

    /// Writes shards and index to `directory` of `place`.
    void write(const TemporaryDirectory& place, const fs::path& directory) {
        index["shards"] = nlohmann::json::object();
        for (const auto& [name, content] : contents) {
            const auto packed = zstd(msgpack(content));
            index["shards"][name] = bytes_of(sha256(packed));
            place.write(directory / index["info"].value("shards_base_url", "") /
                            (sha256(packed) + ".msgpack.zst"),
                        packed);
        }
        place.write(directory / "repodata_shards.msgpack.zst", zstd(msgpack(index)));
    }

    std::map<std::string, nlohmann::json> contents; ///< by name
    nlohmann::json index = {{"version", 1}, {"info", {{"base_url", ""}, {"shards_base_url", ""}}}};
};

} // namespace containerize::test

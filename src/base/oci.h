// The documents of an image, as OCI and Docker have them: indexes, manifests, configurations. None is
// trusted.
#pragma once

#include "util/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::base {

/// Bytes that a document may have.
inline constexpr std::uint64_t largest_manifest = 4U << 20U;
inline constexpr std::uint64_t largest_config = 8U << 20U;
/// Docker itself stops at 127.
inline constexpr std::size_t most_layers = 512;

struct Descriptor {
    std::string media_type;
    std::string digest; ///< "sha256:..."; of layers in a docker-archive empty
    std::uint64_t size = 0;
    std::string name; ///< of layers in a docker-archive: the archive's member
};

struct Platform {
    std::string os, architecture, variant;
};

struct Manifest {
    Descriptor config;
    std::vector<Descriptor> layers; ///< the lowest first
};

/// One of several manifests, of which the machine's own is wanted.
struct IndexEntry {
    Descriptor manifest;
    Platform platform; ///< empty where the index does not say
    std::string tag;   ///< in an image layout
};

/// One of the two.
struct Document {
    std::optional<Manifest> manifest;
    std::vector<IndexEntry> index;
};

/// How an image wants its programs to be run.
struct ImageConfig {
    Platform platform;
    std::vector<std::string> environment; ///< "NAME=value"
    std::string working_directory;
    std::vector<std::string> entrypoint, command;
    std::vector<std::string> diff_ids; ///< "sha256:..." of each layer when uncompressed
};

/// `where` is what messages name.
Result<Document> parse_document(std::string_view text, const std::string& where);
Result<ImageConfig> parse_config(std::string_view text, const std::string& where);

/// As images call it: "amd64", "arm64", "ppc64le", ...
std::string this_architecture();
/// The entry for linux and `architecture`; of several tags, `tag`'s. An input error that lists what there is
/// otherwise.
Result<Descriptor> choose(const std::vector<IndexEntry>& index, const std::string& architecture,
                          const std::string& tag, const std::string& where);

} // namespace containerize::base

// The documents of an OCI or Docker image: indexes, manifests, configurations. None of them is trusted.
#pragma once

#include "core/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::base {

/// Largest sizes of documents, in bytes.
inline constexpr std::uint64_t largest_manifest = 4U << 20U;
inline constexpr std::uint64_t largest_config = 8U << 20U;
/// Docker's own limit is 127.
inline constexpr std::size_t most_layers = 512;

struct Descriptor {
    std::string media_type = {};
    std::string digest = {}; ///< "sha256:..."; empty for layers in a docker-archive
    std::uint64_t size = 0;
    std::string name = {}; ///< for layers in a docker-archive: the archive's member
};

struct Platform {
    std::string os = {}, architecture = {}, variant = {};
};

struct Manifest {
    Descriptor config;
    std::vector<Descriptor> layers = {}; ///< the lowest first
};

/// A manifest in an index, which has one for each platform.
struct IndexEntry {
    Descriptor manifest;
    Platform platform; ///< empty if the index does not say
    std::string tag;   ///< in an image layout
};

/// Either a manifest or an index.
struct Document {
    std::optional<Manifest> manifest;
    std::vector<IndexEntry> index;
};

/// How the image's programs are to be run.
struct ImageConfig {
    Platform platform;
    std::vector<std::string> environment; ///< "NAME=value"
    std::string working_directory;
    std::vector<std::string> entrypoint, command;
    std::vector<std::string> diff_ids; ///< "sha256:..." of each uncompressed layer
};

/// Messages name `where`.
Result<Document> parse_document(std::string_view text, const std::string& where);
Result<ImageConfig> parse_config(std::string_view text, const std::string& where);

/// This machine's architecture as images name it: "amd64", "arm64", "ppc64le", ...
std::string this_architecture();
/// An input error if an image is for another one; empty: any.
Status check_architecture(const std::string& architecture, const std::string& where);
/// The entry for linux and `architecture` and, if it is not empty, `tag`. Without exactly one tag that fits,
/// an input error that lists what there is.
Result<Descriptor> choose(const std::vector<IndexEntry>& index, const std::string& architecture,
                          const std::string& tag, const std::string& where);

} // namespace containerize::base

// Where an image's documents and layers come from: a registry, or what `skopeo`, `docker save` and others
// have written to disk.
#pragma once

#include "base/layers.h"
#include "base/oci.h"
#include "base/reference.h"
#include "util/error.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace containerize::base {

/// An image, as far as its documents tell.
struct ImageInfo {
    std::string digest; ///< of the manifest for this architecture; of a docker-archive, the configuration's
    std::string index_digest; ///< of the index that named it; empty if there was none
    ImageConfig config;
    std::vector<Descriptor> layers; ///< the lowest first
};

class Blobs {
public:
    Blobs() = default;
    Blobs(const Blobs&) = delete;
    Blobs& operator=(const Blobs&) = delete;
    virtual ~Blobs() = default;

    /// Documents are verified by their digests.
    virtual Result<ImageInfo> info() = 0;
    /// The bytes of a layer as they come, which LayerMerge verifies. What was asked for before is not needed
    /// any more, unless it is the same; `next`, if there is one, is what will be asked for then.
    virtual Result<ReadMore> open(const Descriptor& layer, const Descriptor* next) = 0;
};

Result<std::unique_ptr<Blobs>> open_layout(const Reference& reference);

/// The document itself, or the one that it names for this architecture, which `fetch` brings.
using FetchDocument = std::function<Result<std::string>(const Descriptor& descriptor, std::uint64_t limit)>;
Result<ImageInfo> read_image(const std::string& document, std::string digest, const std::string& tag,
                             const std::string& where, const FetchDocument& fetch);

/// The bytes of a file.
Result<ReadMore> read_pieces(const std::filesystem::path& file);
/// As these, once: the disk gets back the room of what was read, where its filesystem can give it.
Result<ReadMore> consume_pieces(const std::filesystem::path& file);

} // namespace containerize::base

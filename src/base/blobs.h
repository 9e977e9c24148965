// Sources of an image's documents and layers: a registry, or what `skopeo`, `docker save` and others have
// written to disk.
#pragma once

#include "base/image_reference.h"
#include "base/oci.h"
#include "base/oci_layers.h"
#include "core/error.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace containerize::base {

/// What an image's documents tell.
struct ImageInfo {
    std::string digest; ///< of the manifest for this architecture; for a docker-archive, of the configuration
    std::string index_digest = {}; ///< of the index that lists the manifest; may be empty
    ImageConfig config;
    std::vector<Descriptor> layers = {}; ///< the lowest first
};

class Blobs {
public:
    Blobs() = default;
    Blobs(const Blobs&) = delete;
    Blobs& operator=(const Blobs&) = delete;
    virtual ~Blobs() = default;

    /// Reads the documents, and verifies them by their digests.
    virtual Result<ImageInfo> info() = 0;
    /// The stored bytes of a layer, which LayerMerge verifies. Only one layer is kept: opening another one
    /// drops it. `next`, if it is not null, is the layer that will be opened then.
    virtual Result<ReadMore> open(const Descriptor& layer, const Descriptor* next) = 0;
};

std::unique_ptr<Blobs> open_layout(const Reference& reference);

/// Reads the image of `document`: a manifest, or an index that names one for this architecture and, if it is
/// not empty, `tag`. `fetch` gets the other documents.
using FetchDocument = std::function<Result<std::string>(const Descriptor& descriptor, std::uint64_t limit)>;
Result<ImageInfo> read_image(const std::string& document, std::string digest, const std::string& tag,
                             const std::string& where, const FetchDocument& fetch);

/// Reads a file in pieces.
Result<ReadMore> read_pieces(const std::filesystem::path& file);
/// The same for one pass only: frees the disk space of what was read, if the filesystem can do so.
Result<ReadMore> consume_pieces(const std::filesystem::path& file);

} // namespace containerize::base

// Merges the layers of an image into one tree as they are read: nothing is unpacked.
#pragma once

#include "base/oci.h"
#include "core/error.h"
#include "image/writer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace containerize::base {

/// Returns the next bytes of a source; empty at its end.
using ReadMore = std::function<Result<std::span<const std::byte>>()>;

/// A layer. It can be opened again, which is rarely needed.
struct Layer {
    std::string name;    ///< for messages
    std::string digest;  ///< of the stored bytes; empty if unknown
    std::string diff_id; ///< of the tar archive in them; empty if unknown
    std::function<Result<ReadMore>()> open;
};

/// Writes layers into an image, the uppermost first, so that each path is written once: what an upper layer
/// has or has removed at a path hides what lower ones have. Everything goes by names in the image's own tree,
/// so no link of a layer is ever followed.
///
/// - A directory of an upper layer hides a lower layer's link of the same path, as with mounted layers.
/// - An entry below a link (or file) of its own layer is refused, and so are absolute names and "..".
/// - Devices, pipes and sockets are left out; of extended attributes only "user." is kept. Both are counted.
class LayerMerge {
public:
    /// `limit`: most bytes of all layers together when unpacked.
    LayerMerge(image::Writer& writer, std::uint64_t limit);
    LayerMerge(const LayerMerge&) = delete;
    LayerMerge& operator=(const LayerMerge&) = delete;
    ~LayerMerge();

    /// Adds the next lower layer: gzip, zstd or uncompressed. Verifies its digests after reading all of it.
    Status add(const Layer& layer);
    /// To be called after the lowest layer. Fails if the file of a hard link was in none.
    Status finish();

    struct LeftOut {
        std::uint64_t devices = 0;    ///< also pipes and sockets
        std::uint64_t attributes = 0; ///< other than "user."
        std::uint64_t capabilities = 0;
    };
    [[nodiscard]] const LeftOut& left_out() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace containerize::base

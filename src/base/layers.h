// The layers of an image, made one tree as they are read: nothing is unpacked.
#pragma once

#include "base/oci.h"
#include "image/writer.h"
#include "util/error.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace containerize::base {

/// The next bytes of something; empty at its end.
using ReadMore = std::function<Result<std::span<const std::byte>>()>;

/// A layer, which can be read again: only rarely is it.
struct Layer {
    std::string name;    ///< for messages
    std::string digest;  ///< of the bytes as they come; empty if not known
    std::string diff_id; ///< of the tar archive in them; empty if not known
    std::function<Result<ReadMore>()> open;
};

/// Writes layers into an image, the uppermost first, so that a path is written once: what an upper layer has
/// at a path, or removed there, hides what lower ones have. All is by name, in the image's own tree: no link
/// of a layer is ever followed.
///
/// - A directory of an upper layer hides a lower layer's link of the same path, as it does where layers are
///   mounted over each other.
/// - An entry below a link (or file) of its own layer, and names that are absolute or have ".." in them, are
///   refused.
/// - Devices, pipes and sockets are left out; of extended attributes only "user." is kept. Both are counted.
class LayerMerge {
public:
    /// `limit`: bytes that all layers may have together when unpacked.
    LayerMerge(image::Writer& writer, std::uint64_t limit);
    LayerMerge(const LayerMerge&) = delete;
    LayerMerge& operator=(const LayerMerge&) = delete;
    ~LayerMerge();

    /// The next lower layer; gzip, zstd or not compressed. Digests are compared when all has been read.
    Status add(const Layer& layer);
    /// After the lowest one.
    Status finish();

    struct LeftOut {
        std::uint64_t devices = 0;    ///< and pipes and sockets
        std::uint64_t attributes = 0; ///< that a namespace could not honour
        std::uint64_t capabilities = 0;
    };
    [[nodiscard]] const LeftOut& left_out() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace containerize::base

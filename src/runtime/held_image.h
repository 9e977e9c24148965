// Copies of images that one process of a node holds for all later sessions of its user there.
#pragma once

#include "runtime/manifest.h"
#include "runtime/staged_image.h"
#include "util/error.h"
#include "util/fd.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace containerize::runtime {

/// The copy that a holder on this node has of the image with this digest; nothing if there is none of this
/// user's, or if it has another size.
std::optional<Fd> held_image(const std::string& sha256, std::uint64_t size);

/// Has copies of images, and gives them to sessions that ask for them by digest, at sockets without files:
/// when it ends, however that is, nothing is left but what sessions have open.
class ImageHolder {
public:
    /// Copies the images of an installation to `place` (not off). What another holder on this node has
    /// already is shared with it, for as long as this one lives. An image is read from the file in `brought`
    /// that has its place there, if that is the user's and what was built; all those files are removed.
    static Result<ImageHolder> hold(const Manifest& manifest, const std::filesystem::path& prefix,
                                    StagePlace place, const std::vector<std::filesystem::path>& brought);

    /// Answers until an interrupt comes (util/interrupt.h).
    void serve();

    /// What could not be done as it was meant to.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

private:
    struct Image {
        std::string sha256;
        std::uint64_t size = 0;
        Fd copy, listener;
        Fd other; ///< a connection to the holder that has the name, which ends with that one
    };
    Status add(const ImageFile& file, const image::Layers::ImageFile& source, Result<Fd> taken,
               const std::filesystem::path& brought, StagePlace place);
    static bool share(Image& image); ///< with the holder that has the name
    void answer(const Image& image);
    static void succeed(Image& image);

    std::vector<Image> images_;
    std::vector<Fd> clients_; ///< until they hang up
    std::vector<std::string> notes_;
};

} // namespace containerize::runtime

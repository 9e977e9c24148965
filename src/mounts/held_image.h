// Copies of images that one process (the holder) keeps on a node for all later sessions of its user.
#pragma once

#include "core/error.h"
#include "core/fd.h"
#include "manifest/launch_settings.h"
#include "manifest/manifest.h"
#include "mounts/staged_image.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace containerize::mounts {

/// The copy of the image with this digest, from a holder of this user on this node; nullopt if there is none,
/// or if its size differs.
std::optional<Fd> held_image(const std::string& sha256, std::uint64_t size);

/// Keeps copies of images and hands them to sessions by digest, over abstract sockets. Nothing is left when
/// it ends, for whatever reason, but the descriptors that sessions have.
class [[nodiscard]] ImageHolder {
public:
    /// Copies the images of an installation to `place`, which is not `off`. A copy that another holder on
    /// this node has is shared for as long as this holder lives. `brought` are files already on the node, one
    /// for each image in their order: one that is the user's and has the right content is used instead of the
    /// image. All those of the user are unlinked.
    static Result<ImageHolder> hold(const manifest::Manifest& manifest, const std::filesystem::path& prefix,
                                    manifest::StagePlace place,
                                    const std::vector<std::filesystem::path>& brought);

    /// Answers sessions until an interrupt comes (util/interrupt.h).
    void serve();

    /// Why files in `brought` were not used.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

private:
    struct Image {
        std::string sha256;
        std::uint64_t size = 0;
        Fd copy = {}, listener = {};
        Fd other = {}; ///< a connection to the holder that owns the name, closed when that holder ends
    };
    Status add(const manifest::ImageFile& file, const image::Layers::ImageFile& source, Result<Fd> taken,
               const std::filesystem::path& brought, manifest::StagePlace place);
    void answer(const Image& image);
    static void succeed(Image& image);

    std::vector<Image> images_;
    std::vector<Fd> clients_; ///< kept until they hang up
    std::vector<std::string> notes_;
};

} // namespace containerize::mounts

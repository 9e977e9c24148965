// The store of base images: one file for each digest, shared by all installations.
#pragma once

#include "base/oci.h"
#include "core/error.h"
#include "core/variables.h"
#include "util/file_lock.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace containerize::base {

/// An image: STORE/sha256-DIGITS.sqfs, described by STORE/sha256-DIGITS.json. It exists as soon as its .json
/// does.
struct StoredImage {
    std::filesystem::path file;
    std::vector<std::string> references; ///< that lead to it (Reference::text)
    std::string digest;                  ///< "sha256:..."
    std::string index_digest = {};       ///< may be empty
    ImageConfig config = {};
    std::uint64_t size = 0; ///< of the file
};

/// `configured` if it is not empty, else $CONTAINERIZE_BASES, else $XDG_DATA_HOME/containerize/bases, else
/// ~/.local/share/containerize/bases. It belongs on a disk that all nodes see, because installations name the
/// files. An input error if none is an absolute path.
Result<std::filesystem::path> store_directory(const Environment& environment,
                                              const std::filesystem::path& configured = {});

/// The images of a store, by reference and digest. Those that are damaged or from others are skipped and
/// logged.
std::vector<StoredImage> list_images(const std::filesystem::path& store);

/// Finds an image by Reference::text or by its digest or its index's, in the first store that has it.
std::optional<StoredImage> find_image(const std::vector<std::filesystem::path>& stores,
                                      const std::string& name);

/// Moves `image.file`, which must be on the store's filesystem, into the store. From then on, its references
/// lead to no other image of the store.
Result<StoredImage> add_image(const std::filesystem::path& store, StoredImage image);

/// Records that another reference leads to this image, and to no other one.
Status add_reference(const std::filesystem::path& store, const StoredImage& image,
                     const std::string& reference);

/// Removes an image at once: installations that use it do not start any more.
Status remove_image(const std::filesystem::path& store, const StoredImage& image);

/// A user's directory for making an image, for one process at a time. Entering one removes what killed
/// processes left of other images; what they have downloaded for this image is used. Leaving one keeps what
/// is in it for the next try.
class [[nodiscard]] StagingDirectory {
public:
    /// Waits while another process of this user makes the same image. Makes the store if it does not exist.
    static Result<StagingDirectory> enter(const std::filesystem::path& store, const std::string& digest);
    /// Removes everything.
    void clean();

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    StagingDirectory(std::filesystem::path path, FileLock lock)
        : path_(std::move(path)), lock_(std::move(lock)) {}
    std::filesystem::path path_;
    FileLock lock_;
};

} // namespace containerize::base

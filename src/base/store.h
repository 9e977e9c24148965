// Where base images are kept: one file for each digest, which all installations share.
#pragma once

#include "base/oci.h"
#include "util/error.h"
#include "util/file_lock.h"
#include "util/process.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace containerize::base {

/// STORE/sha256-DIGITS.sqfs, and beside it STORE/sha256-DIGITS.json, which says the rest. An image is there
/// as soon as its .json is.
struct StoredImage {
    std::filesystem::path file;
    std::vector<std::string> references; ///< that led to it, as Reference::text has them
    std::string digest;                  ///< "sha256:..."
    std::string index_digest;            ///< may be empty
    ImageConfig config;
    std::uint64_t size = 0; ///< of the file
};

/// `configured`, if it is not empty, else $CONTAINERIZE_BASES, else $XDG_DATA_HOME/containerize/bases, else
/// ~/.local/share/containerize/bases. On a disk that all nodes see: installations name the files.
Result<std::filesystem::path> store_directory(const Environment& environment,
                                              const std::filesystem::path& configured = {});

/// What is there, by reference and digest; damaged entries are left out, said in the log.
std::vector<StoredImage> list_images(const std::filesystem::path& store);

/// By Reference::text or by digest, also an index's, in the first store that has it.
std::optional<StoredImage> find_image(const std::vector<std::filesystem::path>& stores,
                                      const std::string& name);

/// Puts `image.file`, which must be on the store's file system, into the store. The reference leads to no
/// other image of it from then on.
Result<StoredImage> add_image(const std::filesystem::path& store, StoredImage image);

/// Notes that one more reference leads to this image.
Status add_reference(const std::filesystem::path& store, const StoredImage& image,
                     const std::string& reference);

/// Its file goes at once: installations that use it do not start any more.
Status remove_image(const std::filesystem::path& store, const StoredImage& image);

/// Where an image is put together, for one process at a time. What a killed one left of other images is
/// removed when this is made; its own layers are used, if they are whole.
class Workshop {
public:
    /// Waits for another process that makes the same image. Made if the store is not there.
    static Result<Workshop> enter(const std::filesystem::path& store, const std::string& digest);
    Workshop(Workshop&&) noexcept;
    Workshop& operator=(Workshop&&) = delete;
    ~Workshop(); ///< keeps downloads for a next try
    /// Nothing is left then.
    void clean();

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    Workshop(std::filesystem::path path, FileLock lock);
    std::filesystem::path path_;
    FileLock lock_;
};

} // namespace containerize::base

// Writing a squashfs image: entry by entry, or a whole tree.
#pragma once

#include "util/error.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace containerize::image {

enum class Compressor { none, zstd, lz4 };

struct Compression {
    Compressor compressor = Compressor::zstd;
    int level = 3; ///< zstd only, 1..22. 15 costs 25 times the CPU of 3 for 14 % less
};

/// "zstd", "zstd:LEVEL", "lz4", "none".
Result<Compression> parse_compression(std::string_view text);
/// "131072", "128K", "1M": a power of two from 4 KiB to 1 MiB.
Result<std::uint32_t> parse_block_size(std::string_view text);

struct WriterOptions {
    Compression compression;
    std::uint32_t block_size = 128U << 10U; ///< 1 MiB blocks triple the bytes that a cold import decompresses
    unsigned jobs = 1;                      ///< compressing threads
    std::uint64_t memory = 256U << 20U;     ///< bytes of blocks in flight, at most
    std::optional<std::uint32_t>
        source_date_epoch; ///< later times are clamped to it; also the image's own time
};

/// Permissions and time of an entry. Owner and group are always root in the image: the server shows the
/// user's.
struct Attributes {
    mode_t mode = 0644; ///< permission bits only
    std::uint32_t mtime = 0;
    std::vector<std::pair<std::string, std::string>> xattrs; ///< user.* only
};

struct WriteStats {
    std::uint64_t files = 0, directories = 0, links = 0;
    std::uint64_t input_bytes = 0; ///< of file content, before compression
    std::uint64_t image_bytes = 0;
    std::vector<std::string>
        left_out; ///< by write_tree: sockets, pipes and devices, which an environment has no use for
};

/// Builds one image. Paths are relative to the image's root, without leading '/'; parents may come later or
/// not at all (they are then 0755). The order of calls decides the order of data; the result depends on
/// nothing else: the number of threads changes no byte. A path given twice is an error.
class Writer {
public:
    static Result<Writer> create(const std::filesystem::path& image, const WriterOptions& options);
    Writer(Writer&&) noexcept;
    Writer& operator=(Writer&&) noexcept;
    ~Writer(); ///< without finish(): the file is removed

    Status add_directory(std::string_view path, const Attributes& attributes);
    Status add_symlink(std::string_view path, std::string_view target, const Attributes& attributes);
    /// In the image of a layer: what the layers below have at this path is gone. Attributes of a directory
    /// say the same with `opaque_xattr` (image/layers.h).
    Status add_whiteout(std::string_view path);
    /// A second name of a regular file that was added before.
    Status add_hardlink(std::string_view path, std::string_view existing);
    /// Content is appended in any pieces between begin and end; one file at a time.
    Status begin_file(std::string_view path, const Attributes& attributes);
    Status append(std::span<const std::byte> data);
    Status end_file();

    [[nodiscard]] bool contains(std::string_view path) const;
    /// Of the directory at `path`; nullptr if there is none. Valid until it is added again or removed.
    [[nodiscard]] const Attributes* directory(std::string_view path) const;
    /// Takes an entry, and what is below it, out again; nothing happens if it is not there. Its content stays
    /// in the file, unreachable.
    void remove(std::string_view path);

    /// Makes the file a whole image as it stands, which can be mounted until something else is added: then
    /// its tables go, and later ones take their place.
    Status checkpoint();
    /// A last checkpoint. Whoever keeps the file sees to it that it lasts (sync_file).
    Result<WriteStats> finish();

private:
    struct State;
    explicit Writer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

/// Called now and then with content bytes read so far.
using PackProgress = std::function<void(std::uint64_t)>;

/// What all may do with a file of which the owner may do `mode`: read, and execute if it is a program or a
/// directory, unless `umask_bits` forbids it. Nobody writes to an image, and setuid means nothing in it.
mode_t mode_for_sharing(mode_t mode, mode_t umask_bits);

/// What becomes of the whiteouts and opaque directories of an overlay's upper directory.
enum class Whiteouts {
    apply, ///< they remove what they cover, which is in this image
    keep   ///< they do, and stay as well: this image is a layer, and others are below it
};

/// Adds a directory tree, entries sorted by path bytes. What is in the image already makes way: a file for a
/// file, and so on, while directories are merged. The tree may be the upper directory of an overlay (with
/// userxattr) whose lower one is this image. Returns the paths that were left out.
Result<std::vector<std::string>> add_tree(Writer& writer, const std::filesystem::path& root,
                                          mode_t umask_bits, const PackProgress& progress = {});

/// Packs a directory tree, entries sorted by path bytes, so that equal trees give equal images.
/// Modes are made fit for sharing: what the owner may read all may read, unless `umask_bits` forbids;
/// write permission for group and others, setuid and setgid are dropped. Hard links within the tree are kept
/// as such. Sockets and devices are left out with a note in the log.
Result<WriteStats> write_tree(const std::filesystem::path& root, const std::filesystem::path& image,
                              const WriterOptions& options, mode_t umask_bits,
                              const PackProgress& progress = {});

} // namespace containerize::image

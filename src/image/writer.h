// Writing a squashfs image: entry by entry, or a whole tree.
#pragma once

#include "core/error.h"
#include "image/reader.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace containerize::image {

/// By squashfs's numbers. The table in options.cpp says which of them images are written with.
enum class Compressor : std::uint16_t { none, gzip, lzma, lzo, xz, lz4, zstd };

struct Compression {
    Compressor compressor = Compressor::zstd;
    int level = 3; ///< 0 if it has none. zstd's 15 costs 25 times the CPU of 3 for 14 % less
};

/// Parses "zstd", "zstd:LEVEL", "lz4" or "none"; anything else is an input error.
Result<Compression> parse_compression(std::string_view text);
/// "zstd3", "lz4" or "none": for the names of files.
std::string name_of(const Compression& compression);
/// What parse_compression() parses, for messages: "zstd:LEVEL with a level from 1 to 22, lz4 or none".
std::string compression_forms();
/// Parses "131072", "128K" or "1M": a power of two from 4 KiB to 1 MiB. Anything else is an input error.
Result<std::uint32_t> parse_block_size(std::string_view text);

struct WriterOptions {
    Compression compression = {};
    std::uint32_t block_size = 128U << 10U; ///< 1 MiB blocks triple the bytes that a cold import decompresses
    unsigned jobs = 1;                      ///< compressing threads
    std::uint64_t memory = 256U << 20U;     ///< most bytes of blocks in flight
    std::optional<std::uint32_t> source_date_epoch =
        {};                       ///< later times become this one; the image's own time
    mode_t directory_mode = 0755; ///< of parents that are never added themselves
};

/// Permissions and time of an entry. In the image, root owns everything: the server shows the user as owner.
struct Attributes {
    mode_t mode = 0644; ///< permission bits only
    std::uint32_t mtime = 0;
    std::vector<std::pair<std::string, std::string>> xattrs = {}; ///< user.* only
};

struct WriteStats {
    std::uint64_t files = 0, directories = 0, links = 0;
    std::uint64_t input_bytes = 0; ///< of file content, before compression
    std::uint64_t image_bytes = 0;
    std::vector<std::string> left_out; ///< by write_tree: sockets, pipes and devices
};

/// Where stored blocks of another image are now in this one.
struct CopiedBlocks {
    struct Range {
        std::uint64_t from = 0, to = 0; ///< position of the first byte: there, and here
        std::uint64_t size = 0;
        [[nodiscard]] std::uint64_t end() const { return from + size; }
        /// Where the byte at `there`, which the range contains, is now.
        [[nodiscard]] std::uint64_t position(std::uint64_t there) const { return there - from + to; }
    };
    std::vector<Range> ranges; ///< by their positions there; none contains another
    /// Numbers in this image, by their numbers in the other.
    std::unordered_map<std::uint32_t, std::uint32_t> fragments;

    /// The range that contains these `size` bytes; nullptr if there is none.
    [[nodiscard]] const Range* find(std::uint64_t from, std::uint64_t size) const;
    void add(const Range& range);
};

/// Builds one image. Paths are relative to the image's root, without leading '/'; parents may come later, or
/// never (their mode is then `directory_mode`). The order of calls decides the order of data. The result
/// depends on nothing else, not even on the number of threads. Only a directory may be added twice.
class Writer {
public:
    static Result<Writer> create(const std::filesystem::path& image, const WriterOptions& options);
    Writer(Writer&&) noexcept;
    Writer& operator=(Writer&&) noexcept;
    ~Writer(); ///< without finish(), the file is removed

    Status add_directory(std::string_view path, const Attributes& attributes);
    Status add_symlink(std::string_view path, std::string_view target, const Attributes& attributes);
    /// In the image of a layer: removes what the layers below have at this path. A directory with the
    /// attribute `opaque_xattr` (image/layers.h) does so, too.
    Status add_whiteout(std::string_view path);
    /// Adds another name of a regular file that was added before.
    Status add_hardlink(std::string_view path, std::string_view existing);
    /// Content is appended in any pieces between begin and end; one file at a time.
    Status begin_file(std::string_view path, const Attributes& attributes);
    Status append(std::span<const std::byte> data);
    Status end_file();

    /// Whether blocks of this image can be copied as they are: it must have the same compressor and block
    /// size.
    [[nodiscard]] bool can_copy(const Reader& other) const;
    /// Copies the stored blocks of these files of another image as they are, in that image's order, except
    /// those in `copied`, and adds them to that. The files can then be added without being read.
    Status copy_blocks(const Reader& other, std::span<const StoredFile> files, CopiedBlocks& copied);
    Status link_file(std::string_view path, const Attributes& attributes, const StoredFile& file,
                     const CopiedBlocks& blocks);

    [[nodiscard]] bool contains(std::string_view path) const;
    /// The attributes of the directory at `path`; nullptr if there is none. Valid until it is added again or
    /// removed.
    [[nodiscard]] const Attributes* directory(std::string_view path) const;
    /// Removes an entry with all that is below it, if it exists. Its content stays in the file, unreachable.
    void remove(std::string_view path);

    /// Makes the file a complete image that can be mounted. When something else is added, the tables are
    /// removed, and later written again.
    Status checkpoint();
    /// The last checkpoint. The caller syncs the file if it has to last (sync_file).
    Result<WriteStats> finish();

private:
    struct State;
    explicit Writer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

/// Called now and then with the content bytes read so far.
using PackProgress = std::function<void(std::uint64_t)>;

/// The mode in an image of a file with `mode`: everybody may read it, and execute it if it is a program or a
/// directory, unless `umask_bits` forbids it. Only its owner keeps write permission; setuid and setgid are
/// dropped.
mode_t mode_for_sharing(mode_t mode, mode_t umask_bits);

/// What is done with whiteouts and opaque directories in an overlay's upper directory.
enum class Whiteouts {
    apply, ///< they remove what they hide, which is in this image
    keep   ///< they also stay: this image is a layer, and others are below it
};

/// Adds a directory tree, entries sorted by path bytes. It replaces what the image has at the same paths,
/// except that directories are merged. The tree may be the upper directory of an overlay (with userxattr)
/// over this image. Returns the paths that were left out.
Result<std::vector<std::string>> add_tree(Writer& writer, const std::filesystem::path& root,
                                          mode_t umask_bits, const PackProgress& progress = {});

/// Packs a directory tree, entries sorted by path bytes, so that equal trees give equal images. Modes are
/// made fit for sharing (mode_for_sharing). Hard links within the tree are kept. Sockets, pipes and devices
/// are left out, and returned in the statistics.
Result<WriteStats> write_tree(const std::filesystem::path& root, const std::filesystem::path& image,
                              const WriterOptions& options, mode_t umask_bits,
                              const PackProgress& progress = {});

} // namespace containerize::image

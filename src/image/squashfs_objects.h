// libsquashfs's objects as C++ values, and our implementations of two of its interfaces.
#pragma once

#include "core/error.h"
#include "core/fd.h"

#include <cstdint>
#include <memory>
#include <string>

#include <sqfs/block_processor.h>
#include <sqfs/block_writer.h>
#include <sqfs/compressor.h>
#include <sqfs/dir_writer.h>
#include <sqfs/error.h>
#include <sqfs/frag_table.h>
#include <sqfs/id_table.h>
#include <sqfs/inode.h>
#include <sqfs/io.h>
#include <sqfs/meta_writer.h>
#include <sqfs/super.h>
#include <sqfs/xattr_writer.h>

namespace containerize::image {

struct DestroySquashfsObject {
    template<class Object>
    void operator()(Object* object) const {
        sqfs_destroy(object);
    }
};
template<class Object>
using SquashfsObject = std::unique_ptr<Object, DestroySquashfsObject>;

/// The meaning of libsquashfs's error codes.
std::string squashfs_error(int code);

/// The file that an image is written to. Unlike libsquashfs's own, it remembers why a write failed.
class OutputFile : public sqfs_file_t {
public:
    explicit OutputFile(Fd fd);
    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] std::uint64_t size() const { return size_; }
    /// The errno of the first read or write that failed, or 0.
    [[nodiscard]] int error_number() const { return error_number_; }
    /// Appends the bytes from `begin` to `end` of another file. Returns an error code of libsquashfs.
    int append_range(int from, std::uint64_t begin, std::uint64_t end);

private:
    static OutputFile& self(sqfs_file_t* file) { return static_cast<OutputFile&>(*file); }
    static int read_bytes(sqfs_file_t* file, sqfs_u64 offset, void* buffer, size_t size);
    static int write_bytes(sqfs_file_t* file, sqfs_u64 offset, const void* buffer, size_t size);
    static int set_size(sqfs_file_t* file, sqfs_u64 size);

    int failed(); ///< keeps the first errno
    void start_writing();

    Fd fd_;
    std::uint64_t size_ = 0;
    /// The end of what append_range() wrote. libsquashfs does not know of it, and would cut it off together
    /// with a duplicate that it wrote last.
    std::uint64_t kept_ = 0;
    std::uint64_t started_ = 0; ///< up to where writing to the disk was started
    int error_number_ = 0;
};

/// Calls everything incompressible, so that every block is stored as it is. The superblock names it zstd:
/// each image must name a compressor, but readers will never need this one.
sqfs_compressor_t* make_storing_compressor();

/// Owns `inner`, and returns "not compressible" if the result is not smaller than the input. libsquashfs
/// 1.2.0's lz4 does not, and unsquashfs refuses an image with a block that grew. Null if there is no memory.
sqfs_compressor_t* make_shrinking_compressor(sqfs_compressor_t* inner);

} // namespace containerize::image

#include "image/squashfs_objects.h"

#include "core/read_write.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace containerize::image {

std::string squashfs_error(int code) {
    switch (code) {
    case SQFS_ERROR_ALLOC:
        return "not enough memory";
    case SQFS_ERROR_IO:
        return "a read or write failed";
    case SQFS_ERROR_COMPRESSOR:
        return "the compressor failed";
    case SQFS_ERROR_CORRUPTED:
        return "the data is damaged";
    case SQFS_ERROR_UNSUPPORTED:
        return "this build of libsquashfs cannot do that";
    case SQFS_ERROR_OVERFLOW:
        return "a number is too large for the squashfs format";
    case SQFS_ERROR_OUT_OF_BOUNDS:
        return "a position is outside the file";
    case SQFS_ERROR_ARG_INVALID:
        return "libsquashfs rejected an argument";
    case SQFS_ERROR_INTERNAL:
        return "libsquashfs could not start its threads: this user may have too many processes";
    default:
        return "libsquashfs failed with code " + std::to_string(code);
    }
}

OutputFile::OutputFile(Fd fd) : sqfs_file_t{}, fd_(std::move(fd)) {
    // Destroyed by its owner, as a C++ object; libsquashfs only borrows it.
    base.destroy = [](sqfs_object_t*) {};
    base.copy = nullptr;
    read_at = read_bytes;
    write_at = write_bytes;
    get_size = [](const sqfs_file_t* file) -> sqfs_u64 {
        return static_cast<const OutputFile*>(file)->size_;
    };
    truncate = set_size;
}

int OutputFile::failed() {
    if (error_number_ == 0) error_number_ = errno;
    return SQFS_ERROR_IO;
}

int OutputFile::read_bytes(sqfs_file_t* file, sqfs_u64 offset, void* buffer, size_t size) {
    auto& out = self(file);
    const auto got = read_all_at(out.fd_.get(), buffer, size, static_cast<off_t>(offset));
    if (got < 0) return out.failed();
    return static_cast<std::size_t>(got) == size ? 0 : SQFS_ERROR_OUT_OF_BOUNDS;
}

int OutputFile::write_bytes(sqfs_file_t* file, sqfs_u64 offset, const void* buffer, size_t size) {
    auto& out = self(file);
    if (!write_all_at(out.fd_.get(), {static_cast<const char*>(buffer), size}, static_cast<off_t>(offset)))
        return out.failed();
    out.size_ = std::max(out.size_, offset + size);
    out.start_writing();
    return 0;
}

int OutputFile::append_range(int from, std::uint64_t begin, std::uint64_t end) {
    constexpr std::size_t piece = 8U << 20U; // as much as start_writing() waits for
    std::vector<std::byte> buffer;           // stays empty where the kernel copies
    while (begin < end) {
        const auto wanted = std::min<std::uint64_t>(piece, end - begin);
        auto at = static_cast<off_t>(begin);
        auto to = static_cast<off_t>(size_);
        if (buffer.empty()) {
            const auto copied = copy_file_range(from, &at, fd_.get(), &to, wanted, 0);
            if (copied == 0) return SQFS_ERROR_OUT_OF_BOUNDS;
            if (copied > 0) {
                begin += static_cast<std::uint64_t>(copied);
                size_ += static_cast<std::uint64_t>(copied);
                start_writing();
                continue;
            }
            // Filesystems, and kernels, differ in what they can copy and in how they refuse.
            buffer.resize(piece);
        }
        const auto got = read_all_at(from, buffer.data(), wanted, at);
        if (got < 0) return failed();
        if (static_cast<std::uint64_t>(got) != wanted) return SQFS_ERROR_OUT_OF_BOUNDS;
        if (const int code = write_bytes(this, size_, buffer.data(), wanted); code != 0) return code;
        begin += wanted;
    }
    kept_ = size_;
    return 0;
}

// Writes to the disk while the next blocks are compressed, so that a later sync has little left to wait for.
void OutputFile::start_writing() {
    constexpr std::uint64_t piece = 8U << 20U;
    if (size_ < started_ + piece) return;
    sync_file_range(fd_.get(), static_cast<off_t>(started_), static_cast<off_t>(size_ - started_),
                    SYNC_FILE_RANGE_WRITE);
    started_ = size_;
}

int OutputFile::set_size(sqfs_file_t* file, sqfs_u64 size) {
    auto& out = self(file);
    size = std::max<sqfs_u64>(size, out.kept_);
    if (ftruncate(out.fd_.get(), static_cast<off_t>(size)) != 0) return out.failed();
    out.size_ = size;
    out.started_ = std::min(out.started_, size);
    return 0;
}

sqfs_compressor_t* make_storing_compressor() {
    struct Storing : sqfs_compressor_t {
        Storing() : sqfs_compressor_t{} {
            base.destroy = [](sqfs_object_t* object) { delete reinterpret_cast<Storing*>(object); };
            base.copy = [](const sqfs_object_t*) {
                return reinterpret_cast<sqfs_object_t*>(new (std::nothrow) Storing);
            };
            get_configuration = [](const sqfs_compressor_t*, sqfs_compressor_config_t* config) {
                *config = {};
                config->id = SQFS_COMP_ZSTD;
            };
            write_options = [](sqfs_compressor_t*, sqfs_file_t*) { return 0; };
            read_options = [](sqfs_compressor_t*, sqfs_file_t*) { return 0; };
            // 0 means that the result would not be smaller than the input.
            do_block = [](sqfs_compressor_t*, const sqfs_u8*, sqfs_u32, sqfs_u8*, sqfs_u32) -> sqfs_s32 {
                return 0;
            };
        }
    };
    return new (std::nothrow) Storing;
}

sqfs_compressor_t* make_shrinking_compressor(sqfs_compressor_t* inner) {
    struct Shrinking : sqfs_compressor_t {
        SquashfsObject<sqfs_compressor_t> real;

        explicit Shrinking(sqfs_compressor_t* wrapped) : sqfs_compressor_t{}, real(wrapped) {
            base.destroy = [](sqfs_object_t* object) { delete reinterpret_cast<Shrinking*>(object); };
            base.copy = [](const sqfs_object_t* object) -> sqfs_object_t* {
                auto* copied = static_cast<sqfs_compressor_t*>(
                    sqfs_copy(reinterpret_cast<const Shrinking*>(object)->real.get()));
                if (copied == nullptr) return nullptr;
                return reinterpret_cast<sqfs_object_t*>(make_shrinking_compressor(copied));
            };
            get_configuration = [](const sqfs_compressor_t* self, sqfs_compressor_config_t* config) {
                const auto& of = static_cast<const Shrinking*>(self)->real;
                of->get_configuration(of.get(), config);
            };
            write_options = [](sqfs_compressor_t* self, sqfs_file_t* file) {
                const auto& of = static_cast<Shrinking*>(self)->real;
                return of->write_options(of.get(), file);
            };
            read_options = [](sqfs_compressor_t* self, sqfs_file_t* file) {
                const auto& of = static_cast<Shrinking*>(self)->real;
                return of->read_options(of.get(), file);
            };
            do_block = [](sqfs_compressor_t* self, const sqfs_u8* in, sqfs_u32 size, sqfs_u8* out,
                          sqfs_u32 room) -> sqfs_s32 {
                const auto& of = static_cast<Shrinking*>(self)->real;
                const sqfs_s32 written = of->do_block(of.get(), in, size, out, room);
                return written > 0 && static_cast<sqfs_u32>(written) >= size ? 0 : written;
            };
        }
    };
    auto* made = new (std::nothrow) Shrinking(inner);
    if (made == nullptr) sqfs_destroy(inner);
    return made;
}

} // namespace containerize::image

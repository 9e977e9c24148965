#include "core/mapped_file.h"

#include <utility>

#include <sys/mman.h>
#include <sys/stat.h>

namespace containerize {

Result<MappedFile> MappedFile::map(const OpenFile& file) {
    const auto failed = [&file] { return fail_errno("cannot read the file", file.path.string()); };
    struct stat info {};
    if (fstat(file.fd(), &info) != 0) return failed();
    MappedFile mapped;
    const auto size = static_cast<std::size_t>(info.st_size);
    // Memory for the file and the padding.
    void* address =
        mmap(nullptr, size + padding, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) return failed();
    mapped.address_ = static_cast<char*>(address);
    mapped.reserved_ = size + padding;
    mapped.size_ = size;
    // The file goes over the beginning; the rest is the padding.
    if (size > 0 &&
        mmap(mapped.address_, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file.fd(), 0) == MAP_FAILED)
        return failed();
    return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)),
      reserved_(std::exchange(other.reserved_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
    std::swap(reserved_, other.reserved_);
    return *this;
}

MappedFile::~MappedFile() {
    if (address_ != nullptr) munmap(address_, reserved_);
}

} // namespace containerize

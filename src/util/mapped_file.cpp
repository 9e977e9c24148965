#include "util/mapped_file.h"

#include "util/fd.h"

#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace containerize {

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return fail_errno("cannot read the file", path.string());
    return map(file.get(), path);
}

Result<MappedFile> MappedFile::map(int file, const std::filesystem::path& path) {
    struct stat info {};
    if (fstat(file, &info) != 0) return fail_errno("cannot read the file", path.string());
    MappedFile mapped;
    const auto size = static_cast<std::size_t>(info.st_size);
    // Memory first, and the file over its beginning: what is left of it is the padding.
    void* address =
        mmap(nullptr, size + padding, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) return fail_errno("cannot read the file", path.string());
    mapped.address_ = static_cast<char*>(address);
    mapped.reserved_ = size + padding;
    if (size > 0 && mmap(address, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
        return fail_errno("cannot read the file", path.string());
    mapped.size_ = size;
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

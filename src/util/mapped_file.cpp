#include "util/mapped_file.h"

#include "util/fd.h"

#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize {

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return fail_errno("cannot read the file", path.string());
    return map(file.get(), path);
}

// Memory for as much as the file has, and the padding.
Result<MappedFile> MappedFile::reserve(int file, const std::filesystem::path& path, int protection) {
    struct stat info {};
    if (fstat(file, &info) != 0) return fail_errno("cannot read the file", path.string());
    MappedFile mapped;
    const auto size = static_cast<std::size_t>(info.st_size);
    void* address =
        mmap(nullptr, size + padding, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) return fail_errno("cannot read the file", path.string());
    mapped.address_ = static_cast<char*>(address);
    mapped.reserved_ = size + padding;
    mapped.size_ = size;
    return mapped;
}

Result<MappedFile> MappedFile::map(int file, const std::filesystem::path& path) {
    auto mapped = reserve(file, path, PROT_READ);
    if (!mapped || mapped->size_ == 0) return mapped;
    // The file over the beginning: what is left of the memory is the padding.
    if (mmap(mapped->address_, mapped->size_, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
        return fail_errno("cannot read the file", path.string());
    return mapped;
}

Result<MappedFile> MappedFile::copy(const std::filesystem::path& path) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return fail_errno("cannot read the file", path.string());
    auto copied = reserve(file.get(), path, PROT_READ | PROT_WRITE);
    if (!copied) return copied;
    std::size_t filled = 0;
    for (ssize_t got = 1; filled < copied->size_ && got != 0; filled += static_cast<std::size_t>(got)) {
        got = read(file.get(), copied->address_ + filled, copied->size_ - filled);
        if (got < 0) return fail_errno("cannot read the file", path.string());
    }
    copied->size_ = filled; // it may have been shortened meanwhile
    return copied;
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

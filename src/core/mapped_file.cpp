#include "core/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

namespace containerize {

Result<MappedFile> MappedFile::map(const OpenFile& file) {
    const auto failed = [&file] { return fail_errno("cannot read the file", file.path.string()); };
    struct stat info {};
    if (fstat(file.fd(), &info) != 0) return failed();
    const auto size = static_cast<std::size_t>(info.st_size);
    // Memory for the file and the padding.
    void* address =
        mmap(nullptr, size + padding, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) return failed();
    std::unique_ptr<char, Unmap> memory(static_cast<char*>(address), Unmap{size});
    // The file goes over the beginning; the rest is the padding.
    if (size > 0 && mmap(address, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file.fd(), 0) == MAP_FAILED)
        return failed();
    return MappedFile(std::move(memory));
}

void MappedFile::Unmap::operator()(char* memory) const {
    munmap(memory, size + padding);
}

} // namespace containerize

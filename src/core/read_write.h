// read() and write() of all bytes, in spite of signals and of a kernel that does less at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace containerize {

/// The number of bytes read, less than `size` only at the end of the file; -1 on failure, with errno.
ssize_t read_all(int fd, void* data, std::size_t size);
/// The same from a position in the file.
ssize_t read_all_at(int fd, void* data, std::size_t size, off_t offset);

/// All of a regular file from its start, as far as it can be read.
std::string read_from_start(int fd);

/// False on failure, with errno.
bool write_all(int fd, std::string_view data);
/// The same to a position in the file.
bool write_all_at(int fd, std::string_view data, off_t offset);

} // namespace containerize

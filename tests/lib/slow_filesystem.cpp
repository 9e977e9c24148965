// Shows a directory read-only, like a busy parallel filesystem: every open and read is delayed. While there
// is a file FAULTS, reads of images fail as it says, like on a broken filesystem.
//
//     eio 1          each read fails
//     eio 5          each fifth read fails
//     eio-except 3   each read fails, except each third one
//     eio 1 20 29    each read of any of the bytes 20 to 29 fails
//     short 1        each read returns less than requested
//     hang 1 20 29   each read of any of the bytes 20 to 29 waits until FAULTS says something else
//
// Usage: slow_filesystem DIRECTORY MOUNT-POINT MICROSECONDS [FAULTS]
// Stays in the foreground until it is unmounted. Other users may read it.
#define FUSE_USE_VERSION 35

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

std::string directory;
std::chrono::microseconds delay;
std::string faults;

/// "eio", "short" or "hang" if this read is to fail, otherwise empty.
std::string fault_of(std::string_view path, off_t offset, size_t size) {
    static std::atomic<unsigned> reads{0};
    std::string kind;
    unsigned each = 0;
    off_t first = 0;
    off_t last = 0;
    if (faults.empty() || !path.ends_with(".sqfs")) return {};
    std::ifstream file(faults);
    file >> kind >> each;
    if (file >> first >> last && (offset > last || offset + static_cast<off_t>(size) <= first)) return {};
    if (each == 0) return {};
    const bool is_each = ++reads % each == 0;
    if (kind == "eio-except") return is_each ? "" : "eio";
    return is_each ? kind : "";
}

void wait() {
    std::this_thread::sleep_for(delay);
}

int result(int code) {
    return code < 0 ? -errno : 0;
}

void* begin(fuse_conn_info* connection, fuse_config* config) {
    // Data stays in the page cache after it was read, as on other filesystems.
    config->kernel_cache = 1;
    config->entry_timeout = config->attr_timeout = config->negative_timeout = 3600;
    connection->max_background = 64; // many requests at once
    return nullptr;
}

int get_attributes(const char* path, struct stat* info, fuse_file_info*) {
    return result(lstat((directory + path).c_str(), info));
}

int read_link(const char* path, char* target, size_t size) {
    const auto got = readlink((directory + path).c_str(), target, size - 1);
    if (got < 0) return -errno;
    target[got] = '\0';
    return 0;
}

int open_file(const char* path, fuse_file_info* file) {
    wait();
    const int fd = open((directory + path).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    file->fh = static_cast<std::uint64_t>(fd);
    file->direct_io = faults.empty() ? 0 : 1; // every read comes here, short ones are not repeated
    return 0;
}

int read_file(const char* path, char* out, size_t size, off_t offset, fuse_file_info* file) {
    wait();
    auto fault = fault_of(path, offset, size);
    for (; fault == "hang"; fault = fault_of(path, offset, size))
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (fault == "eio") return -EIO;
    if (fault == "short") size = (size + 1) / 2;
    const auto got = pread(static_cast<int>(file->fh), out, size, offset);
    return got < 0 ? -errno : static_cast<int>(got);
}

int close_file(const char*, fuse_file_info* file) {
    return result(close(static_cast<int>(file->fh)));
}

int read_directory(const char* path, void* list, fuse_fill_dir_t add, off_t, fuse_file_info*,
                   fuse_readdir_flags) {
    DIR* opened = opendir((directory + path).c_str());
    if (opened == nullptr) return -errno;
    while (const dirent* entry = readdir(opened))
        add(list, static_cast<const char*>(entry->d_name), nullptr, 0, fuse_fill_dir_flags{});
    closedir(opened);
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 4 && argc != 5) {
        std::fputs("usage: slow_filesystem DIRECTORY MOUNT-POINT MICROSECONDS [FAULTS]\n", stderr);
        return 2;
    }
    directory = argv[1];
    delay = std::chrono::microseconds(std::atol(argv[3]));
    if (argc == 5) faults = argv[4];
    fuse_operations operations{};
    operations.init = begin;
    operations.getattr = get_attributes;
    operations.readlink = read_link;
    operations.open = open_file;
    operations.read = read_file;
    operations.release = close_file;
    operations.readdir = read_directory;
    std::string options = "allow_other,ro,subtype=slow,default_permissions";
    std::string program = argv[0], foreground = "-f", option = "-o";
    char* list[] = {program.data(), foreground.data(), option.data(), options.data(), argv[2], nullptr};
    return fuse_main(5, list, &operations, nullptr);
}

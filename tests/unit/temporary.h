// A directory for one test, removed with its content at the end.
#pragma once

#include "core/filesystem.h"

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include <sys/stat.h>

namespace containerize::test {

class TemporaryDirectory {
public:
    explicit TemporaryDirectory(const fs::path& parent = fs::temp_directory_path()) {
        std::string name = (parent / "containerize-test-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
        path_ = fs::canonical(name);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    ~TemporaryDirectory() { [[maybe_unused]] const auto removed = remove_tree(path_); }

    [[nodiscard]] const fs::path& path() const { return path_; }
    [[nodiscard]] fs::path operator/(const fs::path& name) const { return path_ / name; }

    /// Writes a file and creates missing directories; returns its path.
    fs::path write(const fs::path& name, std::string_view content) const {
        const auto file = path_ / name;
        fs::create_directories(file.parent_path());
        fs::remove(file); // ext4 waits for the disk when a file is emptied and written again
        std::ofstream(file, std::ios::binary) << content;
        return file;
    }

private:
    fs::path path_;
};

/// The permissions of a file; 0 if it is missing.
inline mode_t mode_of(const fs::path& file) {
    struct stat info {};
    return lstat(file.c_str(), &info) == 0 ? info.st_mode & 07777U : 0;
}

} // namespace containerize::test

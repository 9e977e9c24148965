// A file that is being written to the cache.
#pragma once

#include "core/filesystem.h"
#include "core/open_file.h"

#include <memory>
#include <string>
#include <utility>

#include <fcntl.h>

namespace containerize::conda {

/// A temporary file, removed by the destructor unless it was moved.
class Temporary {
public:
    explicit Temporary(const fs::path& directory) {
        std::string name = (directory / ".tmp-XXXXXX").string();
        Fd file(mkostemp(name.data(), O_CLOEXEC));
        if (file) file_ = {.path = name, .file = std::make_shared<const Fd>(std::move(file))};
        path_ = file_.path;
    }
    Temporary(Temporary&& other) noexcept
        : file_(std::move(other.file_)), path_(std::exchange(other.path_, {})) {}
    Temporary& operator=(Temporary&&) = delete;
    ~Temporary() {
        std::error_code ignored;
        if (!path_.empty()) fs::remove(path_, ignored);
    }
    explicit operator bool() const { return static_cast<bool>(file_); }
    /// Whoever moves the file must update its path.
    [[nodiscard]] OpenFile& file() { return file_; }
    [[nodiscard]] const OpenFile& file() const { return file_; }

private:
    OpenFile file_;
    fs::path path_; ///< the original path
};

} // namespace containerize::conda

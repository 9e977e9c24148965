// A file that stays open: what was verified is what is read, whatever its name has come to mean.
#pragma once

#include "util/error.h"
#include "util/fd.h"

#include <filesystem>
#include <memory>

#include <fcntl.h>

namespace containerize {

struct OpenFile {
    std::filesystem::path path;     ///< where it was found, for messages
    std::shared_ptr<const Fd> file; ///< for reading

    static Result<OpenFile> open(const std::filesystem::path& path) {
        Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!file) return fail_errno("cannot read the file", path.string());
        return OpenFile{.path = path, .file = std::make_shared<const Fd>(std::move(file))};
    }
    explicit operator bool() const { return file != nullptr; }
    [[nodiscard]] int fd() const { return file->get(); }
};

} // namespace containerize

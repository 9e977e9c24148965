// A file that stays open: what was verified is what is read, whatever its name has come to mean.
#pragma once

#include "util/error.h"
#include "util/fd.h"

#include <filesystem>
#include <memory>

namespace containerize {

/// For reading: a regular file, or /dev/null, which people give for an empty one. Of anything else the wait
/// might have no end, such as of a pipe with a name in an installation of somebody else. `flags` as of
/// open(2).
Result<Fd> open_regular(const std::filesystem::path& path, int flags = 0);

struct OpenFile {
    std::filesystem::path path;     ///< where it was found, for messages
    std::shared_ptr<const Fd> file; ///< for reading

    static Result<OpenFile> open(const std::filesystem::path& path) {
        auto file = open_regular(path);
        if (!file) return fail(std::move(file.error()));
        return OpenFile{.path = path, .file = std::make_shared<const Fd>(std::move(*file))};
    }
    explicit operator bool() const { return file != nullptr; }
    [[nodiscard]] int fd() const { return file->get(); }
};

} // namespace containerize

// A file that stays open: what was verified is what is read, whatever its path names by then.
#pragma once

#include "core/error.h"
#include "core/fd.h"

#include <filesystem>
#include <memory>

#include <fcntl.h>

namespace containerize {

/// Opens a regular file for reading, or /dev/null, which people use as an empty file. Anything else fails,
/// because it could block for ever, such as a named pipe in somebody else's installation. `flags` are added
/// to those for open(2).
Result<Fd> open_regular(const std::filesystem::path& path, int flags = 0);

/// Whether `name` in `directory` still names what is open; a link to it does not count.
bool is_named(const Fd& file, const std::filesystem::path& name, int directory = AT_FDCWD);

struct OpenFile {
    std::filesystem::path path;     ///< where it was opened, for messages
    std::shared_ptr<const Fd> file; ///< for reading

    static Result<OpenFile> open(const std::filesystem::path& path) {
        auto file = TRY(open_regular(path));
        return OpenFile{.path = path, .file = std::make_shared<const Fd>(std::move(file))};
    }
    explicit operator bool() const { return file != nullptr; }
    [[nodiscard]] int fd() const { return file->get(); }
};

} // namespace containerize

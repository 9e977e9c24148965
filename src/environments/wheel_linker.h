// Installs packed wheels into an image, by linking their files.
#pragma once

#include "core/error.h"
#include "environments/wheel_images.h"
#include "image/listing.h"
#include "image/writer.h"
#include "pip/resolution.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace containerize::environments {

/// Where wheels are installed.
struct WheelPrefix {
    std::string interpreter;  ///< absolute path, for the first lines of scripts
    std::string python;       ///< "3.11"
    std::string library_name; ///< "python3.11"
};

class WheelLinker {
public:
    WheelLinker(image::Writer& writer, WheelPrefix prefix, mode_t umask_bits)
        : writer_(writer), prefix_(std::move(prefix)), umask_bits_(umask_bits) {}

    /// Replaces files of wheels that were added before, and of the image.
    Status add(const pip::ResolvedPackage& package, PackedWheel& wheel);

    /// Removes a package that was added, if it was.
    void remove(const std::string& name);

    [[nodiscard]] std::uint64_t files() const { return files_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
    struct Contents;
    struct ToLink {
        std::string path; ///< relative to the prefix
        const image::ListedEntry* entry;
    };
    Status link(image::Reader& from, const std::vector<ToLink>& files, const std::string& package);
    Status write(const std::string& path, const std::string& content, bool executable, std::uint32_t mtime);
    Status make_way(const std::string& path, const std::string& package);

    image::Writer& writer_;
    WheelPrefix prefix_;
    mode_t umask_bits_;
    std::map<std::string, std::string> owners_; ///< the package of each path
    std::uint64_t files_ = 0, bytes_ = 0;
};

} // namespace containerize::environments

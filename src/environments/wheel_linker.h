// Installs packed wheels into an image, by linking their files.
#pragma once

#include "core/error.h"
#include "environments/wheel_images.h"
#include "image/listing.h"
#include "image/writer.h"
#include "pip/resolution.h"
#include "wheel/installation.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::environments {

/// Where wheels are installed.
struct WheelPrefix {
    std::string interpreter;  ///< absolute path, for the first lines of scripts
    std::string python;       ///< "3.11"
    std::string library_name; ///< "python3.11"
    std::string cache_tag;    ///< of byte-code: "cpython-311"
    wheel::Layout (*layout)(std::string_view python, std::string_view distribution) = wheel::venv_layout;
};

/// What a wheel adds to the image. Paths are relative to the prefix.
struct WheelPlan {
    struct File {
        std::string path;
        image::ListedEntry entry; ///< in the wheel's image
    };
    std::string package;
    std::vector<File> files, byte_code;
    std::vector<wheel::GeneratedFile> generated;
    std::uint32_t newest = 0; ///< the time of the wheel's newest file, which generated ones get
};

class WheelLinker {
public:
    WheelLinker(image::Writer& writer, WheelPrefix prefix, mode_t umask_bits)
        : writer_(writer), prefix_(std::move(prefix)), umask_bits_(umask_bits) {}

    [[nodiscard]] Result<WheelPlan> plan(const pip::ResolvedPackage& package, PackedWheel& wheel) const;

    /// Why the image has no place for the wheel, to follow "because"; empty if all of its paths are new.
    /// `taken` are paths that something else will get in the image, with all that is below them.
    [[nodiscard]] std::string obstacle_to(const WheelPlan& plan, const std::set<std::string>& taken) const;

    /// Adds a wheel as planned. Replaces files of wheels that were added before. Fails if it would replace
    /// other files of the image.
    Status add(const WheelPlan& plan, PackedWheel& wheel);

    [[nodiscard]] bool has(const std::string& package) const;
    /// Removes a package that was added, if it was.
    void remove(const std::string& package);

    /// Modules that were added without byte-code, relative to the prefix.
    [[nodiscard]] const std::set<std::string>& without_byte_code() const { return without_byte_code_; }

    [[nodiscard]] std::uint64_t files() const { return files_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

private:
    struct Contents;
    Status link(image::Reader& from, const std::vector<WheelPlan::File>& files, const std::string& package);
    Status write(const std::string& path, const std::string& content, bool executable, std::uint32_t mtime);
    Status make_way(const std::string& path, const std::string& package);
    void remove_empty_parents(const std::string& path);
    [[nodiscard]] std::string path_of(const wheel::Layout& layout, const wheel::Place& place) const;

    image::Writer& writer_;
    WheelPrefix prefix_;
    mode_t umask_bits_;
    std::map<std::string, std::string> owners_; ///< the package of each path
    std::set<std::string> without_byte_code_;
    std::uint64_t files_ = 0, bytes_ = 0;
};

} // namespace containerize::environments

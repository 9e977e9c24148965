// The files of a wheel's .dist-info directory that say what it is and how to install it.
#pragma once

#include "core/error.h"

#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::wheel {

/// The kinds of directories into which a wheel is installed. purelib and platlib are one here.
enum class Scheme { site_packages, scripts, data, headers };

/// The directory of a package image that contains the scheme's files: "site-packages".
std::string_view directory_of(Scheme scheme);

struct Place {
    Scheme scheme = Scheme::site_packages;
    std::string path; ///< in the scheme's directory, without "." and ".."

    auto operator<=>(const Place&) const = default;
};

/// Where the file of this name in a wheel belongs: "six-1.0.data/scripts/x" is {scripts, "x"}. Fails, with
/// the reason only, for names that lead out of the directory, and for unknown directories in
/// NAME-VERSION.data.
Result<Place> place_of(std::string_view name);

struct DistInfo {
    std::string directory; ///< "six-1.16.0.dist-info"
    /// Contents of METADATA, WHEEL, RECORD and entry_points.txt; the last is empty if there is none.
    std::string metadata, wheel, record, entry_points;
};

struct Metadata {
    std::string name, version; ///< as written; empty if missing
};
/// Reads METADATA or PKG-INFO.
Metadata parse_metadata(std::string_view text);

/// Checks the version of the format in WHEEL: its files must be installed by rules that we know.
Status check_wheel_version(std::string_view text);

struct RecordRow {
    std::string path;   ///< relative to site-packages
    std::string digest; ///< "sha256=47DEQ..."; may be empty
    std::string size;   ///< may be empty

    auto operator<=>(const RecordRow&) const = default;
};
Result<std::vector<RecordRow>> parse_record(std::string_view text);
/// In the form that pip writes.
std::string record_text(const std::vector<RecordRow>& rows);

/// A row's digest for a SHA-256 in hexadecimal digits, as util/digest.h returns it.
std::string record_digest(std::string_view sha256);

struct EntryPoint {
    std::string name;             ///< of the command
    std::string module, function; ///< "package.module", "function" or "Class.method"
};
/// The commands: console_scripts and gui_scripts, which are the same on Linux. The last of a name counts, and
/// one of gui_scripts before one of console_scripts.
Result<std::vector<EntryPoint>> parse_entry_points(std::string_view text);

} // namespace containerize::wheel

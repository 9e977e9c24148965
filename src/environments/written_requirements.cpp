#include "environments/written_requirements.h"

#include "conda/version.h"
#include "core/filesystem.h"
#include "environments/requirements_text.h"

#include <utility>

namespace containerize::environments {

namespace {

bool has_checksum(const std::string& line) {
    return line.find(" --hash=") != std::string::npos;
}

/// The options, and the requirements with or without checksums; nothing if there are none of these.
std::vector<Located> part_of(const std::vector<Located>& all, bool verified) {
    std::vector<Located> lines;
    bool some = false;
    for (const auto& line : all) {
        if (!is_option(line.text) && has_checksum(line.text) != verified) continue;
        some = some || !is_option(line.text);
        lines.push_back(line);
    }
    return some ? lines : std::vector<Located>();
}

} // namespace

bool is_option(const std::string& line) {
    return line.starts_with('-') && !line.starts_with("-e ") && !line.starts_with("--editable");
}

Result<spec::Requirements> write_requirements(const fs::path& file, const std::vector<Located>& lines,
                                              const fs::path& input) {
    const auto directory = input.parent_path();
    TRY(write_file(file, requirements_text(lines, directory)));
    auto read = spec::read_requirements(file, directory);
    if (!read) read.error().where = input.string();
    return read;
}

// pip verifies all requirements of a file or none, and VCS requirements have no checksum: so use two files.
Result<std::vector<RequirementsToInstall>> write_lines_of_lock(const std::vector<Located>& lines,
                                                               bool dependencies, const fs::path& input,
                                                               const fs::path& directory) {
    std::vector<RequirementsToInstall> files;
    for (const bool verified : {true, false}) {
        const auto part = part_of(lines, verified);
        if (part.empty()) continue;
        const auto file = directory / (verified ? "locked-verified.txt" : "locked.txt");
        files.push_back({.file = file,
                         .read = TRY(write_requirements(file, part, input)),
                         .directory = input.parent_path(),
                         .input = input,
                         .dependencies = dependencies,
                         .verified = verified});
    }
    return files;
}

Result<std::vector<RequirementsToInstall>> requirements_to_install(const fs::path& input,
                                                                   const spec::Requirements& read,
                                                                   const fs::path& working_directory,
                                                                   const fs::path& directory) {
    if (!read.converted) return {{{.file = input, .read = read, .directory = working_directory}}};
    const auto& converted = *read.converted;
    if (converted.complete) return write_lines_of_lock(converted.lines, false, input, directory);
    const auto file = directory / "converted.txt";
    return {{{.file = file,
              .read = TRY(write_requirements(file, converted.lines, input)),
              .directory = input.parent_path(),
              .input = input}}};
}

Status check_version_of_python(const spec::Requirements& read, const std::string& version) {
    if (!read.converted || read.converted->python.text.empty()) return {};
    const auto& wanted = read.converted->python;
    // A Python that was built from a checkout has "3.14.0a1+".
    const auto own = TRY(conda::Version::parse(version.substr(0, version.find('+'))));
    const auto versions = TRY(conda::VersionSpec::parse(wanted.text));
    if (versions.matches(own)) return {};
    return fail_input(
        "this file is for Python " + wanted.text + ", and the environment has Python " + version, {},
        wanted.where,
        "Create the installation with another Python, such as --python 3.12 or --python conda:3.12.");
}

} // namespace containerize::environments

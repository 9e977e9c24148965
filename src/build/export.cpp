#include "build/export.h"

#include "conda/match_spec.h"
#include "core/filesystem.h"
#include "core/text.h"
#include "core/url.h"
#include "pip/pylock.h"
#include "pip/sources.h"
#include "prefix/records.h"
#include "prefix/states.h"
#include "util/json.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace containerize::build {

namespace {

using spec::LockedPackage;
using spec::PipSource;
using spec::SpecKind;
using spec::WrittenList;

/// A list has the path of a directory, and not what is in it.
void note_directories(const std::vector<LockedPackage>& packages, WrittenList& list) {
    for (const auto& one : packages)
        if (one.source.kind == PipSource::Kind::directory)
            list.notes.push_back(one.name + " " + one.version +
                                 " comes from a directory, whose content is not part of the list: " +
                                 file_url_path(one.source.url));
}

bool has_checksum(const LockedPackage& package) {
    const auto& source = package.source;
    const bool is_file = source.kind == PipSource::Kind::index || source.kind == PipSource::Kind::archive;
    return is_file && !source.sha256.empty();
}

WrittenList requirements_of(const pip::Pylock& lock) {
    WrittenList list;
    for (const auto& option : lock.options)
        list.text += option + "\n";
    const auto without = std::ranges::find_if_not(lock.packages, has_checksum);
    if (without != lock.packages.end())
        list.notes.push_back("no checksums of packages from an index are written: pip accepts them only if "
                             "all packages have one, and " +
                             without->name + " has none");
    for (auto package : lock.packages) {
        if (without != lock.packages.end() && package.source.kind == PipSource::Kind::index)
            package.source.sha256.clear();
        list.text += pip::requirement_of(package) + "\n";
    }
    return list;
}

Result<WrittenList> export_pip(const fs::path& record, const WantedFormat& wanted) {
    auto text = TRY(read_input_file(record));
    const auto lock = TRY(pip::parse_pylock(text, record.string()));
    const auto format = TRY(
        choose_format(wanted, formats_of_pip_export(), "an installation of pip packages", record.string()));
    auto list = format == SpecKind::pylock ? WrittenList{.text = std::move(text)} : requirements_of(lock);
    for (const auto& one : lock.left_out)
        list.notes.push_back("left out is " + one);
    note_directories(lock.packages, list);
    return list;
}

Result<WrittenList> export_conda(const fs::path& record, const WantedFormat& wanted) {
    auto text = TRY(read_input_file(record));
    // The installation may be for another kind of machine than this one.
    const auto subdir = text_of(parse_json_quietly(text), "subdir");
    if (!conda::is_subdir(subdir))
        return fail_input("the lock file is incomplete or damaged", "it names no platform", record.string(),
                          "Build the installation again.");
    const auto locked = TRY(spec::read_locked(record, SpecKind::lock, {.subdir = subdir}));
    const auto format = TRY(choose_format(wanted, formats_of_conda_export(),
                                          "an installation of conda packages", record.string()));
    auto list = list_of(locked, subdir, format);
    if (format == SpecKind::lock) list.text = std::move(text);
    return list;
}

} // namespace

WrittenList list_of(const spec::LockedEnvironment& locked, const std::string& subdir, SpecKind format) {
    auto list = format == SpecKind::lock ? WrittenList{.text = spec::lock_text(locked, subdir)}
                                         : spec::written_list(locked, subdir, format);
    if (locked.of_pip && format != SpecKind::conda_explicit) note_directories(*locked.of_pip, list);
    return list;
}

Result<fs::path> record_of_packages(const fs::path& prefix) {
    for (const char* name : {prefix::own_lock_name, prefix::pylock_name})
        if (auto file = prefix / prefix::share_name / name; quiet::exists(file)) return file;
    return fail_input(
        "this installation has no list of exact packages",
        "it was not built from requirements or from a conda environment, or by an older version",
        prefix.string(), "Build it again from its files in share/inputs.");
}

Result<WrittenList> export_packages(const fs::path& record, const WantedFormat& wanted) {
    return record.filename() == prefix::own_lock_name ? export_conda(record, wanted)
                                                      : export_pip(record, wanted);
}

} // namespace containerize::build

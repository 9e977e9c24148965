#include "conda/link.h"

#include "conda/links.h"
#include "conda/package_image.h"
#include "conda/prefix_records.h"
#include "conda/prefix_replacement.h"
#include "conda/version.h"
#include "core/interrupt.h"
#include "util/in_parallel.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

namespace containerize::conda {

namespace {

/// Paths and names that depend on the Python version.
struct PythonPaths {
    std::string version, name, site_packages, tag; ///< "3.11.4", "python3.11", "lib/...", "cpython-311"
};

bool is_python(const PackageRecord& record) {
    return record.name == "python" && record.noarch != Noarch::python;
}

PythonPaths paths_of(const PackageRecord& python) {
    const auto first = python.version.find('.');
    const auto second = first == std::string::npos ? first : python.version.find('.', first + 1);
    const auto minor = python.version.substr(0, second);
    // A free-threaded build has another library directory.
    const bool free_threaded =
        python.build.ends_with("_cp" + minor.substr(0, first) + minor.substr(first + 1) + "t");
    PythonPaths paths;
    paths.version = python.version;
    paths.name = "python" + minor + (free_threaded ? "t" : "");
    const auto& own = python.python_site_packages_path;
    const bool usable = !own.empty() && own.front() != '/' && own.find("..") == std::string::npos;
    paths.site_packages = usable ? own : "lib/" + paths.name + "/site-packages";
    paths.tag = "cpython-" + minor.substr(0, first) + minor.substr(first + 1);
    return paths;
}

std::optional<PythonPaths> python_paths(const std::vector<PackageInfo>& infos,
                                        const std::optional<PackageRecord>& installed) {
    for (const auto& info : infos)
        if (is_python(info.record)) return paths_of(info.record);
    return installed ? std::optional(paths_of(*installed)) : std::nullopt;
}

/// The path at which an entry of a package is installed.
std::string target_path(const std::string& path, const PackageInfo& info,
                        const std::optional<PythonPaths>& python) {
    if (info.record.noarch != Noarch::python || !python) return path;
    constexpr std::string_view packages = "site-packages/";
    constexpr std::string_view scripts = "python-scripts/";
    if (path.starts_with(packages)) return python->site_packages + "/" + path.substr(packages.size());
    if (path.starts_with(scripts)) return "bin/" + path.substr(scripts.size());
    return path;
}

/// "a/b/c.py" -> "a/b/__pycache__/c.cpython-311.pyc"
std::string byte_code_path(const std::string& path, const std::string& tag) {
    const auto slash = path.rfind('/');
    const auto directory = slash == path.npos ? std::string() : path.substr(0, slash + 1);
    const auto name = path.substr(slash == path.npos ? 0 : slash + 1);
    return directory + "__pycache__/" + name.substr(0, name.size() - 2) + tag + ".pyc";
}

/// Whether it is a file of conda-meta that we write ourselves, so that packages must not.
bool is_record(const std::string& path) {
    constexpr std::string_view directory = "conda-meta/";
    if (!path.starts_with(directory)) return false;
    const auto name =
        std::string_view(path).substr(directory.size(), path.find('/', directory.size()) - directory.size());
    return name == "history" || name.ends_with(".json");
}

std::string entry_point_script(const EntryPoint& point, const std::string& prefix) {
    const auto import = point.function.substr(0, point.function.find('.'));
    return shebang(prefix + "/bin/python") +
           fmt::format("# -*- coding: utf-8 -*-\nimport re\nimport sys\n\nfrom {} import {}\n\nif __name__ "
                       "== '__main__':\n"
                       "    sys.argv[0] = re.sub(r'(-script\\.pyw?|\\.exe)?$', '', sys.argv[0])\n    "
                       "sys.exit({}())\n",
                       point.module, import, point.function);
}

// A channel may have patched a package's metadata, so its values take precedence over those in the archive.
// An explicit list only knows the package's location and, possibly, patched dependencies.
PackageRecord completed(const PackageRecord& given, PackageRecord own) {
    if (given.of_list) {
        own.file_name = given.file_name;
        own.channel = given.channel;
        own.url = given.url;
        own.download_url = given.download_url;
        own.sha256 = given.sha256;
        own.md5 = given.md5;
        own.size = given.size;
        if (!given.subdir.empty()) own.subdir = given.subdir;
        if (!given.depends.empty()) own.depends = given.depends;
        return own;
    }
    PackageRecord record = given;
    if (record.noarch == Noarch::no) record.noarch = own.noarch;
    if (record.subdir.empty()) record.subdir = own.subdir;
    if (record.python_site_packages_path.empty())
        record.python_site_packages_path = std::move(own.python_site_packages_path);
    return record;
}

Result<PackageInfo> read_package(const PackageToLink& package) {
    const auto& given = package.record;
    auto info = TRY(read_package_info(*package.image, given.distribution()));
    auto& own = info.record;
    if (given.name != own.name || given.version != own.version || given.build != own.build)
        return fail({.what = "this package is not " + given.distribution(),
                     .why = "its metadata says that it is " + own.distribution(),
                     .where = package.origin});
    own = completed(given, std::move(own));
    return info;
}

class Linker {
public:
    Linker(const std::vector<PackageToLink>& packages, std::vector<PackageInfo> infos,
           const LinkOptions& options, image::Writer& writer,
           const std::function<void(std::uint64_t)>& progress)
        : packages_(packages), options_(options), writer_(writer), progress_(progress),
          infos_(std::move(infos)) {}

    Result<Linked> link() {
        if (python_ = python_paths(infos_, options_.python); python_) {
            linked_.python_version = python_->version;
            linked_.python_name = python_->name;
            linked_.site_packages = python_->site_packages;
        }
        const auto python =
            std::ranges::find_if(infos_, [](const PackageInfo& info) { return is_python(info.record); });
        if (python != infos_.end()) linked_.python = static_cast<std::size_t>(python - infos_.begin());
        TRY(read_entries());
        TRY(find_targets());
        TRY(find_owners());
        find_scripts();
        TRY(link_payloads());
        TRY(write_changed_files());
        TRY(check_links());
        TRY(write_entry_points());
        TRY(write_records());
        for (const auto& info : infos_)
            linked_.records.push_back(info.record);
        return std::move(linked_);
    }

private:
    /// An entry of a package that is installed.
    struct Wanted {
        std::size_t package;
        std::size_t record; ///< its index in installed_[package]
        const PathEntry* entry;
        const image::ListedEntry* packed;
        std::string target;
    };
    /// What is linked from a package's image as it is.
    struct Payload {
        std::vector<Wanted> files;
        std::vector<image::StoredFile> stored; ///< their content
        std::vector<std::pair<std::string, std::string>>
            links; ///< hard links, and the first names of their files
        /// Of files with several names: the first that is installed.
        std::map<std::tuple<image::Reference, std::string, FileMode>, std::string> first_names;
    };

    Status read_entries() {
        entries_.resize(packages_.size());
        return in_parallel(options_.jobs, packages_.size(), [this](std::size_t i) -> Status {
            if (interrupted()) return fail_interrupted();
            entries_[i] = TRY(read_package_entries(*packages_[i].image));
            return {};
        });
    }

    /// Determines the path of every entry. Entries below a symlink go to where the symlink leads.
    Status find_targets() {
        TRY(find_directory_links());
        targets_.resize(infos_.size());
        for (std::size_t i = 0; i < infos_.size(); ++i)
            for (const auto& entry : infos_[i].paths) {
                auto target = TRY(behind_links(target_path(entry.path, infos_[i], python_), i,
                                               entry.type == PathType::directory));
                targets_[i].emplace(entry.path, std::move(target));
            }
        return {};
    }

    /// Finds symlinks with entries below them. File lists do not tell which entries are symlinks.
    Status find_directory_links() {
        std::unordered_set<std::string> directories;
        for (const auto& info : infos_)
            for (const auto& entry : info.paths) {
                const auto target = target_path(entry.path, info, python_);
                if (entry.type == PathType::directory) directories.insert(target);
                for (auto slash = target.rfind('/'); slash != target.npos && slash > 0;
                     slash = target.rfind('/', slash - 1))
                    if (!directories.insert(target.substr(0, slash)).second) break;
            }
        for (std::size_t i = 0; i < infos_.size(); ++i)
            for (const auto& entry : infos_[i].paths) {
                if (entry.type == PathType::directory) continue;
                const auto found = entries_[i].find(entry.path);
                if (found == entries_[i].end() || !S_ISLNK(found->second.inode.mode)) continue;
                auto target = target_path(entry.path, infos_[i], python_);
                if (!directories.contains(target)) continue;
                auto leads_to = TRY(link_target(i, found->second));
                links_[std::move(target)] = {.target = std::move(leads_to), .package = i};
            }
        return {};
    }

    [[nodiscard]] Result<std::string> link_target(std::size_t package, const image::ListedEntry& link) const {
        auto& image = *packages_[package].image;
        auto target = image.read_link(link.reference);
        if (!target) return unusable(image, "the link '" + link.path + "' cannot be read");
        return std::move(*target);
    }

    Result<std::string> behind_links(const std::string& path, std::size_t package, bool directory) {
        const auto slash = directory ? path.size() : std::min(path.rfind('/'), path.size());
        if (slash == path.size() && !directory) return path; // at the top level
        const auto above = path.substr(0, slash);
        const auto known = real_directories_.find(above);
        auto real = known == real_directories_.end() ? follow({}, above, options_.prefix, link_at())
                                                     : std::optional(known->second);
        if (!real) return hostile(package, "'" + path + "' is behind a link that points outside the prefix");
        real_directories_.emplace(above, *real);
        return *real + (real->empty() || slash == path.size() ? "" : "/") +
               path.substr(std::min(slash + 1, path.size()));
    }

    [[nodiscard]] LinkAt link_at() const {
        return [this](const std::string& path) -> std::optional<std::string> {
            if (const auto found = links_.find(path); found != links_.end()) return found->second.target;
            if (options_.tree.empty() || owners_.contains(path)) return std::nullopt;
            std::error_code none;
            const auto earlier = std::filesystem::read_symlink(options_.tree / path, none);
            return none ? std::nullopt : std::optional(earlier.string());
        };
    }

    Status check_links() const {
        for (const auto& [path, link] : links_) {
            const auto slash = path.rfind('/');
            const auto directory = slash == path.npos ? std::string() : path.substr(0, slash);
            if (!follow(directory, link.target, options_.prefix, link_at()))
                return hostile(link.package, "'" + path + "' is a link that points outside the prefix, to '" +
                                                 link.target.substr(0, 200) + "'");
        }
        return {};
    }

    [[nodiscard]] std::unexpected<Error> hostile(std::size_t package, std::string why) const {
        return fail({.what = "the package " + name(package) + " is unsafe",
                     .why = std::move(why),
                     .where = packages_[package].origin,
                     .hint = "Do not use its channel. Report this to the channel's maintainers."});
    }

    Status find_owners() {
        for (std::size_t i = 0; i < infos_.size(); ++i) {
            for (const auto& entry : infos_[i].paths)
                TRY(own(targets_[i].at(entry.path), i, entry.type == PathType::directory));
            if (python_)
                for (const auto& point : infos_[i].entry_points)
                    TRY(own("bin/" + point.command, i, false));
        }
        for (const auto& [path, owner] : owners_)
            for (auto slash = path.rfind('/'); slash != path.npos && slash > 0;
                 slash = path.rfind('/', slash - 1)) {
                const auto above = owners_.find(path.substr(0, slash));
                if (above == owners_.end() || above->second.directory) continue;
                return fail({.what = "two packages cannot be installed together",
                             .why = "'" + above->first + "' is a file in " + name(above->second.package) +
                                    " and a directory in " + name(owner.package),
                             .hint = "Leave one of them out, or request another version."});
            }
        return {};
    }

    [[nodiscard]] std::string name(std::size_t package) const {
        return infos_[package].record.distribution();
    }

    Status own(const std::string& path, std::size_t package, bool directory) {
        if (path == "conda-meta" && !directory) return hostile(package, "it contains a file 'conda-meta'");
        if (is_record(path)) {
            linked_.warnings.push_back(name(package) + " contains '" + path +
                                       "', which is reserved for conda: the file is left out.");
            return {};
        }
        const auto [entry, is_new] = owners_.emplace(path, Owner{package, directory});
        if (is_new || entry->second.package == package || (directory && entry->second.directory)) return {};
        if (directory != entry->second.directory)
            return fail({.what = "two packages cannot be installed together",
                         .why = "'" + path + "' is a file in one and a directory in the other: " +
                                name(entry->second.package) + ", " + name(package),
                         .hint = "Leave one of them out, or request another version."});
        // Packages may share hundreds of files, so only one warning is given per pair.
        auto& clash = clashes_[{entry->second.package, package}];
        if (clash.first.empty()) clash.first = path;
        ++clash.second;
        entry->second.package = package;
        return {};
    }

    void find_scripts() {
        for (const auto& [pair, clash] : clashes_)
            linked_.warnings.push_back(
                fmt::format("{} and {} both contain '{}'{}. The file of the second package is kept.",
                            name(pair.first), name(pair.second), clash.first,
                            clash.second > 1 ? fmt::format(" and {} more files", clash.second - 1) : ""));
        for (std::size_t i = 0; i < infos_.size(); ++i)
            for (const bool before : {true, false}) {
                const auto path =
                    "bin/." + infos_[i].record.name + (before ? "-pre-link.sh" : "-post-link.sh");
                if (const auto owner = owners_.find(path);
                    owner != owners_.end() && owner->second.package == i)
                    linked_.scripts.push_back({.package = infos_[i].record, .path = path, .before = before});
            }
    }

    Status link_payloads() {
        installed_.resize(infos_.size());
        for (std::size_t i = 0; i < infos_.size(); ++i) {
            if (interrupted()) return fail_interrupted();
            TRY(link_payload(i));
        }
        return {};
    }

    [[nodiscard]] bool owns(std::size_t package, const std::string& target) const {
        const auto owner = owners_.find(target);
        return owner != owners_.end() && owner->second.package == package;
    }

    Status link_payload(std::size_t index) {
        Payload payload;
        for (const auto& entry : infos_[index].paths) {
            const auto& target = targets_[index].at(entry.path);
            const auto found = entries_[index].find(entry.path);
            // Directories that are listed need not be in the archive.
            if (found == entries_[index].end() || !owns(index, target)) continue;
            TRY(link_entry({.package = index,
                            .record = installed_[index].size(),
                            .entry = &entry,
                            .packed = &found->second,
                            .target = target},
                           payload));
        }
        image::CopiedBlocks blocks;
        TRY(writer_.copy_blocks(*packages_[index].image, payload.stored, blocks));
        for (std::size_t i = 0; i < payload.files.size(); ++i)
            TRY(writer_.link_file(payload.files[i].target,
                                  attributes_of(payload.files[i], payload.files[i].packed->inode.mode),
                                  payload.stored[i], blocks));
        for (const auto& [path, original] : payload.links)
            TRY(writer_.add_hardlink(path, original));
        if (progress_) progress_(linked_.bytes);
        return {};
    }

    Status link_entry(const Wanted& wanted, Payload& payload) {
        note_installed(wanted);
        const auto mode = wanted.packed->inode.mode;
        if (S_ISREG(mode)) return link_file(wanted, payload);
        if (S_ISDIR(mode))
            return writer_.add_directory(wanted.target, attributes_of(wanted, S_IFDIR | 0755U));
        auto target = TRY(link_target(wanted.package, *wanted.packed));
        TRY(writer_.add_symlink(wanted.target, target, {.mode = 0777, .mtime = wanted.packed->inode.mtime}));
        links_[wanted.target] = {.target = std::move(target), .package = wanted.package};
        return {};
    }

    [[nodiscard]] image::Attributes attributes_of(const Wanted& wanted, mode_t mode) const {
        return {.mode = image::mode_for_sharing(mode, options_.umask_bits),
                .mtime = wanted.packed->inode.mtime};
    }

    Status link_file(const Wanted& wanted, Payload& payload) {
        const auto& entry = *wanted.entry;
        std::string original;
        if (wanted.packed->inode.nlink > 1) {
            // File lists may say that only some names of a file contain the prefix.
            const auto [first, is_new] = payload.first_names.emplace(
                std::tuple(wanted.packed->reference, entry.placeholder, entry.mode), wanted.target);
            if (!is_new) original = first->second;
        }
        if (!entry.placeholder.empty()) {
            changed_.push_back({.file = wanted, .original = std::move(original)});
            return {};
        }
        if (!original.empty()) {
            payload.links.emplace_back(wanted.target, std::move(original));
            return {};
        }
        auto& image = *packages_[wanted.package].image;
        auto stored = image.stored_file(wanted.packed->reference);
        if (!stored) return unusable(image, "'" + wanted.packed->path + "' is damaged");
        ++linked_.files;
        linked_.bytes += stored->size;
        payload.files.push_back(wanted);
        payload.stored.push_back(std::move(*stored));
        return {};
    }

    /// Writes the files that contain a prefix. After all others, because compressed blocks can be copied only
    /// while no thread compresses others.
    Status write_changed_files() {
        std::unordered_map<std::string, std::string> digests; ///< by path
        for (const auto& [file, original] : changed_) {
            auto& record = installed_[file.package][file.record];
            if (original.empty()) {
                record.sha256_in_prefix = TRY(write_changed(file));
                digests[file.target] = record.sha256_in_prefix;
            } else {
                TRY(writer_.add_hardlink(file.target, original));
                record.sha256_in_prefix = digests.at(original);
            }
        }
        return {};
    }

    /// Returns the file's new sha256.
    Result<std::string> write_changed(const Wanted& file) {
        TRY(writer_.begin_file(file.target, attributes_of(file, file.packed->inode.mode)));
        auto digest = read_with_prefix(*packages_[file.package].image, *file.packed, *file.entry,
                                       options_.prefix, [this](std::string_view piece) -> Status {
                                           linked_.bytes += piece.size();
                                           if (progress_) progress_(linked_.bytes);
                                           return writer_.append(std::as_bytes(std::span(piece)));
                                       });
        if (!digest) {
            digest.error().what += " (" + name(file.package) + ")";
            return digest;
        }
        ++linked_.files;
        TRY(writer_.end_file());
        return digest;
    }

    void note_installed(const Wanted& wanted) {
        auto& paths = installed_[wanted.package];
        const auto& inode = wanted.packed->inode;
        paths.push_back({.path = wanted.target, .source = wanted.entry});
        const bool noarch = infos_[wanted.package].record.noarch == Noarch::python;
        if (!python_ || !S_ISREG(inode.mode) || !wanted.target.ends_with(".py")) return;
        // Byte-code in packages is valid only if its source keeps the mtime and size it was packed with.
        const bool clamped = options_.latest && inode.mtime > *options_.latest;
        if (!noarch && !clamped && wanted.entry->placeholder.empty()) return;
        linked_.to_compile.push_back(wanted.target);
        if (noarch && wanted.entry->placeholder.empty() && wanted.entry->path.starts_with("site-packages/"))
            linked_.modules.push_back(
                {.package = wanted.package, .path = wanted.entry->path, .target = wanted.target});
        if (noarch)
            paths.push_back({.path = byte_code_path(wanted.target, python_->tag),
                             .kind = InstalledPath::Kind::byte_code});
    }

    Status add_file(const std::string& path, const std::string& content, mode_t mode) {
        const image::Attributes attributes{.mode = image::mode_for_sharing(mode, options_.umask_bits),
                                           .mtime = options_.time};
        TRY(writer_.begin_file(path, attributes));
        TRY(writer_.append(std::as_bytes(std::span(content))));
        ++linked_.files;
        return writer_.end_file();
    }

    Status write_entry_points() {
        if (!python_) return {};
        for (std::size_t i = 0; i < infos_.size(); ++i)
            for (const auto& point : infos_[i].entry_points) {
                const auto path = "bin/" + point.command;
                if (owners_.at(path).package != i || writer_.contains(path)) continue;
                TRY(add_file(path, entry_point_script(point, options_.prefix), S_IFREG | 0755U));
                installed_[i].push_back({.path = path, .kind = InstalledPath::Kind::entry_point});
            }
        return {};
    }

    Status write_records() {
        for (std::size_t i = 0; i < infos_.size(); ++i) {
            const auto text = prefix_record(infos_[i].record, installed_[i], packages_[i].requested);
            TRY(add_file("conda-meta/" + name(i) + ".json", text, S_IFREG | 0644U));
        }
        std::vector<std::string> requested;
        std::vector<PackageRecord> records;
        for (std::size_t i = 0; i < infos_.size(); ++i) {
            records.push_back(infos_[i].record);
            requested.insert(requested.end(), packages_[i].requested.begin(), packages_[i].requested.end());
        }
        const auto entry = history_text({.removed = options_.removed,
                                         .added = std::move(records),
                                         .requested = std::move(requested),
                                         .time = options_.time,
                                         .command_line = options_.command_line,
                                         .tool_version = options_.tool_version});
        return add_file("conda-meta/history", options_.earlier_history + entry, S_IFREG | 0644U);
    }

    struct Owner {
        std::size_t package;
        bool directory;
    };
    struct Changed {
        Wanted file;
        std::string original; ///< for a hard link, the first name of its file; otherwise empty
    };

    const std::vector<PackageToLink>& packages_;
    const LinkOptions& options_;
    image::Writer& writer_;
    const std::function<void(std::uint64_t)>& progress_;
    std::vector<PackageInfo> infos_;
    std::optional<PythonPaths> python_;
    struct Link {
        std::string target;
        std::size_t package;
    };
    std::map<std::string, Link> links_;                                 ///< by path
    std::unordered_map<std::string, std::string> real_directories_;     ///< paths without symlinks
    std::vector<std::unordered_map<std::string, std::string>> targets_; ///< by the path in the package
    std::unordered_map<std::string, Owner> owners_;
    std::map<std::pair<std::size_t, std::size_t>, std::pair<std::string, std::size_t>> clashes_;
    std::vector<std::vector<InstalledPath>> installed_;
    std::vector<PackageEntries> entries_; ///< what is in each image
    std::vector<Changed> changed_;        ///< the files that contain a prefix
    Linked linked_;
};

} // namespace

Result<std::vector<PackageInfo>> read_packages(const std::vector<PackageToLink>& packages, unsigned jobs) {
    std::vector<PackageInfo> infos(packages.size());
    const auto read = [&](std::size_t i) -> Status {
        if (interrupted()) return fail_interrupted();
        infos[i] = TRY(read_package(packages[i]));
        return {};
    };
    TRY(in_parallel(jobs, packages.size(), read));
    return infos;
}

Result<Linked> link_packages(const std::vector<PackageToLink>& packages, std::vector<PackageInfo> infos,
                             const LinkOptions& options, image::Writer& writer,
                             const std::function<void(std::uint64_t)>& progress) {
    return Linker(packages, std::move(infos), options, writer, progress).link();
}

} // namespace containerize::conda

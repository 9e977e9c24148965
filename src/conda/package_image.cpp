#include "conda/package_image.h"

#include "conda/archive.h"
#include "conda/prefix_replacement.h"
#include "core/interrupt.h"
#include "util/digest.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>

namespace containerize::conda {

namespace {

/// Approximate size of a piece, even if replacing the prefix makes the content grow.
constexpr std::size_t largest_piece = 1U << 20U;
/// What an archive may have, too (archive.cpp).
constexpr std::uint64_t largest_info_file = 128U << 20U;
constexpr std::string_view info_directory = "info";

/// Puts the payload of one archive into an image.
class PayloadWriter {
public:
    PayloadWriter(const OpenFile& file, const std::string& name, const PackageInfo& info,
                  image::Writer& writer)
        : file_(file), name_(name), writer_(writer) {
        for (const auto& entry : info.paths)
            listed_.emplace(entry.path, &entry);
    }

    Status add(const PackageArchive& archive) {
        TRY(archive.payload(
            [this](const ArchiveEntry& entry, const ReadMore& read) { return visit(entry, read); }));
        for (const auto& [path, entry] : listed_)
            if (entry->type != PathType::directory && !came_.contains(path))
                return wrong(path, "is in the file list, but not in the archive");
        return {};
    }

private:
    std::unexpected<Error> wrong(const std::string& path, std::string why) const {
        return fail({.what = "the package " + name_ + " is damaged",
                     .why = "'" + path + "' " + std::move(why),
                     .where = file_.path.string(),
                     .hint = "Remove it with `containerize cache clean`, and try again. If the error "
                             "remains, tell the channel's maintainers."});
    }

    Status visit(const ArchiveEntry& entry, const ReadMore& read) {
        if (interrupted()) return fail_interrupted();
        const auto found = listed_.find(entry.path);
        if (found == listed_.end()) return {}; // conda does not install unlisted files either
        if (!came_.emplace(entry.path, entry.type).second)
            return wrong(entry.path, "is in the archive twice");
        TRY(check_place(entry));
        switch (entry.type) {
        case EntryType::directory:
            return writer_.add_directory(entry.path, attributes_of(entry));
        case EntryType::symlink:
            if (entry.target.empty()) return wrong(entry.path, "is a link with an empty target");
            return writer_.add_symlink(entry.path, entry.target, attributes_of(entry));
        case EntryType::file:
            return add_file(entry, *found->second, read);
        case EntryType::hardlink:
            return add_hardlink(entry, *found->second);
        }
        return {};
    }

    static image::Attributes attributes_of(const ArchiveEntry& entry) {
        return {.mode = entry.mode, .mtime = entry.mtime};
    }

    /// Nothing can be below a file, and nothing is installed through a link of the same package.
    Status check_place(const ArchiveEntry& entry) const {
        for (auto slash = entry.path.find('/'); slash != entry.path.npos;
             slash = entry.path.find('/', slash + 1)) {
            const auto above = entry.path.substr(0, slash);
            if (!writer_.contains(above)) return {};
            if (writer_.directory(above) == nullptr)
                return wrong(entry.path, "is below '" + above + "', which is not a directory");
        }
        if (entry.type != EntryType::directory && writer_.contains(entry.path))
            return wrong(entry.path, "is not a directory, but other files are below it");
        return {};
    }

    Status add_file(const ArchiveEntry& entry, const PathEntry& listed, const ReadMore& read) {
        if (listed.has_size && listed.size != entry.size)
            return wrong(entry.path,
                         fmt::format("has {} bytes, and the file list says {}", entry.size, listed.size));
        TRY(writer_.begin_file(entry.path, attributes_of(entry)));
        Sha256 digest;
        for (;;) {
            if (interrupted()) return fail_interrupted();
            const auto bytes = TRY(read());
            if (bytes.empty()) break;
            if (!listed.sha256.empty()) digest.update(bytes.data(), bytes.size());
            TRY(writer_.append(bytes));
        }
        if (!listed.sha256.empty())
            if (const auto hex = digest.finish(); hex != listed.sha256)
                return wrong(entry.path,
                             "has the sha256 " + hex + ", and the file list says " + listed.sha256);
        return writer_.end_file();
    }

    Status add_hardlink(const ArchiveEntry& entry, const PathEntry& one) {
        const auto through = original_of_.find(entry.target);
        const auto& name = through == original_of_.end() ? entry.target : through->second;
        const auto original = came_.find(name);
        if (original == came_.end() || name == entry.path)
            return wrong(entry.path, "is a hard link to '" + name + "', which is not listed or comes later");
        if (original->second != EntryType::file)
            return wrong(entry.path, "is a hard link to '" + name + "', which is not a file");
        original_of_.emplace(entry.path, name);
        const auto& other = *listed_.at(name);
        const bool other_size = one.has_size && other.has_size && one.size != other.size;
        const bool other_content = !one.sha256.empty() && !other.sha256.empty() && one.sha256 != other.sha256;
        if (other_size || other_content)
            return wrong(entry.path,
                         "is a hard link to '" + name + "', but the file list says that they differ");
        return writer_.add_hardlink(entry.path, name);
    }

    const OpenFile& file_;
    const std::string& name_;
    image::Writer& writer_;
    std::unordered_map<std::string, const PathEntry*> listed_;
    std::unordered_map<std::string, EntryType> came_;
    std::unordered_map<std::string, std::string> original_of_; ///< hard link -> original
};

Status add_info(const std::map<std::string, std::string>& files, image::Writer& writer) {
    for (const auto& [name, content] : files) {
        TRY(writer.begin_file(std::string(info_directory) + "/" + name, {.mode = 0644}));
        TRY(writer.append(std::as_bytes(std::span(content))));
        TRY(writer.end_file());
    }
    return {};
}

bool is_info(std::string_view path) {
    return path.starts_with(info_directory) &&
           (path.size() == info_directory.size() || path[info_directory.size()] == '/');
}

} // namespace

std::unexpected<Error> unusable(const image::Reader& reader, std::string why) {
    return fail({.what = "the package image cannot be used",
                 .why = std::move(why),
                 .where = reader.name(),
                 .hint = "Remove it with `containerize cache clean --all`, and try again."});
}

Status pack_package(const OpenFile& file, const std::string& name, image::Writer& writer) {
    const auto archive = TRY(PackageArchive::open(file, name));
    const auto files = TRY(archive.info());
    const auto info = parse_package_info(files, name);
    if (!info) {
        auto error = info.error();
        if (error.where.empty()) error.where = file.path.string();
        return fail(std::move(error));
    }
    TRY(add_info(files, writer));
    return PayloadWriter(file, name, *info, writer).add(archive);
}

Result<PackageInfo> read_package_info(image::Reader& reader, const std::string& name) {
    std::map<std::string, std::string> files;
    const auto directory = reader.lookup(reader.root(), info_directory);
    if (!directory) return unusable(reader, std::strerror(directory.error()));
    const auto listing = reader.directory(*directory);
    if (!listing) return unusable(reader, std::strerror(listing.error()));
    for (const auto& entry : (*listing)->entries) {
        image::ListedEntry file{
            .path = std::string((*listing)->name(entry)), .reference = entry.inode, .inode = {}};
        const auto inode = reader.inode(entry.inode);
        if (!inode) return unusable(reader, std::strerror(inode.error()));
        file.inode = *inode;
        files[file.path] = TRY(image::content_of(reader, file, largest_info_file));
    }
    return parse_package_info(files, name);
}

Result<PackageEntries> read_package_entries(image::Reader& reader) {
    PackageEntries entries;
    for (auto& entry : TRY(image::list_entries(reader))) {
        if (is_info(entry.path)) continue;
        auto path = entry.path;
        entries.emplace(std::move(path), std::move(entry));
    }
    return entries;
}

Result<std::string> read_with_prefix(image::Reader& reader, const image::ListedEntry& file,
                                     const PathEntry& entry, const std::string& prefix,
                                     const std::function<Status(std::string_view)>& take) {
    PrefixReplacement replacement(entry.mode, entry.placeholder, prefix, entry.path);
    const auto step = std::max<std::size_t>(
        largest_piece * entry.placeholder.size() / std::max(entry.placeholder.size(), prefix.size()), 1);
    Sha256 installed;
    const auto put = [&](const Result<std::string>& content) -> Status {
        if (!content) return fail(Error(content.error()));
        installed.update(content->data(), content->size());
        return take(*content);
    };
    for (std::uint64_t done = 0; done < file.inode.size;) {
        if (interrupted()) return fail_interrupted();
        std::vector<image::Slice> slices;
        if (const auto read = reader.read(file.reference, done, largest_piece, slices); !read)
            return unusable(reader, "'" + file.path + "' cannot be read");
        const auto before = done;
        for (const auto& slice : slices) {
            std::string_view rest(reinterpret_cast<const char*>(slice.bytes.data()), slice.bytes.size());
            done += rest.size();
            for (; !rest.empty(); rest.remove_prefix(std::min(step, rest.size())))
                TRY(put(replacement.take(rest.substr(0, step))));
        }
        if (done == before) return unusable(reader, "'" + file.path + "' is truncated");
    }
    TRY(put(replacement.finish()));
    return installed.finish();
}

} // namespace containerize::conda

#include "conda/archive.h"

#include "core/filesystem.h"
#include "core/read_write.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::conda {

namespace {

constexpr std::size_t piece_size = 1U << 20U;
/// Limit for all needed files of "info/": more than the largest paths.json of any channel, but harmless.
constexpr std::size_t largest_info = 128U << 20U;
/// More than any package contains, so a larger size in a header indicates a decompression bomb.
constexpr std::uint64_t largest_file = std::uint64_t{64} << 30U;

using Archive = std::unique_ptr<archive, int (*)(archive*)>;

Archive make_archive() {
    return {archive_read_new(), archive_read_free};
}

/// Reads the file with an offset of its own, since others may use the same descriptor.
struct ArchiveSource {
    int file;
    off_t at = 0;
    std::vector<std::byte> buffer = std::vector<std::byte>(piece_size);

    static la_ssize_t read(archive* outer, void* self, const void** data) {
        auto& source = *static_cast<ArchiveSource*>(self);
        const auto got = read_all_at(source.file, source.buffer.data(), source.buffer.size(), source.at);
        *data = source.buffer.data();
        if (got < 0) archive_set_error(outer, errno, "%s", std::strerror(errno));
        source.at += std::max<ssize_t>(got, 0);
        return got;
    }
    static la_int64_t seek(archive* outer, void* self, la_int64_t offset, int whence) {
        auto& source = *static_cast<ArchiveSource*>(self);
        struct stat info {};
        if (whence == SEEK_END && fstat(source.file, &info) != 0) {
            archive_set_error(outer, errno, "%s", std::strerror(errno));
            return ARCHIVE_FATAL;
        }
        const off_t start = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? source.at : info.st_size;
        return source.at = std::max<off_t>(start + offset, 0);
    }
    [[nodiscard]] bool open(archive* outer) {
        archive_read_set_read_callback(outer, read);
        archive_read_set_seek_callback(outer, seek);
        archive_read_set_callback_data(outer, this);
        return archive_read_open1(outer) == ARCHIVE_OK;
    }
};

/// Reads an archive that is a member of another archive.
struct Member {
    archive* outer;
    std::vector<std::byte> buffer = std::vector<std::byte>(256U << 10U);

    static la_ssize_t read(archive* inner, void* self, const void** data) {
        auto& member = *static_cast<Member*>(self);
        const la_ssize_t got = archive_read_data(member.outer, member.buffer.data(), member.buffer.size());
        *data = member.buffer.data();
        if (got < 0)
            archive_set_error(inner, archive_errno(member.outer), "%s", archive_error_string(member.outer));
        return got < 0 ? -1 : got;
    }
};

class TarReader {
public:
    TarReader(archive* tar, const std::string& name, const fs::path& file)
        : tar_(tar), name_(name), file_(file) {}

    Status visit_all(const VisitEntry& visit) {
        archive_entry* header = nullptr;
        for (;;) {
            const int code = archive_read_next_header(tar_, &header);
            if (code == ARCHIVE_EOF) return {};
            if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return broken();
            auto entry = TRY(understand(header));
            if (entry.path.empty()) continue; // the root directory itself
            left_ = entry.type == EntryType::file ? entry.size : 0;
            TRY(visit(entry, [this] { return read(); }));
        }
    }

private:
    std::unexpected<Error> broken() const {
        const char* why = archive_error_string(tar_);
        return fail({.what = "the package " + name_ + " is damaged",
                     .why = why == nullptr ? "it is truncated" : why,
                     .where = file_.string(),
                     .hint = "Remove it with `containerize cache clean`, and try again."});
    }
    std::unexpected<Error> hostile(const std::string& path, std::string why) const {
        return fail({.what = "the package " + name_ + " is unsafe",
                     .why = "'" + path.substr(0, 200) + "' " + std::move(why),
                     .where = file_.string(),
                     .hint = "Do not use its channel. Report this to the channel's maintainers."});
    }

    Result<ArchiveEntry> understand(archive_entry* header) const {
        ArchiveEntry entry;
        const char* path = archive_entry_pathname(header);
        const std::string raw = path == nullptr ? "" : path;
        entry.path = clean_path(raw);
        const mode_t type = archive_entry_filetype(header);
        if (entry.path.empty()) {
            if (type == AE_IFDIR && raw.find_first_not_of("./") == std::string::npos &&
                raw.find("..") == std::string::npos && !raw.starts_with('/'))
                return entry;
            return hostile(raw, "points outside the prefix");
        }
        entry.mode = archive_entry_perm(header) & 0777U;
        entry.mtime =
            static_cast<std::uint32_t>(std::clamp<time_t>(archive_entry_mtime(header), 0, 0xFFFFFFFF));
        if (const char* hardlink = archive_entry_hardlink(header)) {
            entry.type = EntryType::hardlink;
            entry.target = clean_path(hardlink);
            if (entry.target.empty()) return hostile(raw, "is a hard link that points outside the prefix");
            return entry;
        }
        switch (type) {
        case AE_IFREG:
            entry.size = static_cast<std::uint64_t>(std::max<la_int64_t>(0, archive_entry_size(header)));
            if (entry.size > largest_file)
                return hostile(raw, "has a declared size of " + std::to_string(entry.size) + " bytes");
            return entry;
        case AE_IFDIR:
            entry.type = EntryType::directory;
            return entry;
        case AE_IFLNK: {
            entry.type = EntryType::symlink;
            const char* target = archive_entry_symlink(header);
            entry.target = target == nullptr ? "" : target;
            if (entry.target.size() > longest_path)
                return hostile(raw,
                               "is a link to a path of " + std::to_string(entry.target.size()) + " bytes");
            return entry;
        }
        default:
            return hostile(raw, "is a device, pipe or socket");
        }
    }

    Result<std::span<const std::byte>> read() {
        if (left_ == 0) return std::span<const std::byte>();
        const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left_, buffer_.size()));
        const la_ssize_t got = archive_read_data(tar_, buffer_.data(), wanted);
        if (got <= 0) return broken();
        left_ -= static_cast<std::uint64_t>(got);
        return std::span<const std::byte>(buffer_).first(static_cast<std::size_t>(got));
    }

    archive* tar_;
    const std::string& name_;
    const fs::path& file_;
    std::uint64_t left_ = 0;
    std::vector<std::byte> buffer_ = std::vector<std::byte>(piece_size);
};

} // namespace

Result<PackageArchive> PackageArchive::open(const OpenFile& file, std::string name) {
    const auto& text = file.path.native();
    if (text.ends_with(".conda")) return PackageArchive(file, std::move(name), Format::conda);
    if (text.ends_with(".tar.bz2")) return PackageArchive(file, std::move(name), Format::tar_bz2);
    return fail(
        {.what = "not a conda package", .why = "its name does not end in .conda or .tar.bz2", .where = text});
}

// `part` is "info" or "pkg". A .tar.bz2 holds both together, so its visitor must tell them apart.
Status PackageArchive::read(std::string_view part, const VisitEntry& visit) const {
    const auto cannot = [this](archive* of) {
        const char* why = archive_error_string(of);
        return fail({.what = "cannot read the package " + name_,
                     .why = why == nullptr ? "it is damaged" : why,
                     .where = file_.path.string(),
                     .hint = "Remove it with `containerize cache clean`, and try again."});
    };
    ArchiveSource source{.file = file_.fd()};
    const Archive outer = make_archive();
    if (format_ == Format::tar_bz2) {
        archive_read_support_filter_bzip2(outer.get());
        archive_read_support_format_tar(outer.get());
        if (!source.open(outer.get())) return cannot(outer.get());
        return TarReader(outer.get(), name_, file_.path).visit_all(visit);
    }
    // The seekable reader uses the zip's central directory, so the order of members does not matter.
    archive_read_support_format_zip_seekable(outer.get());
    if (!source.open(outer.get())) return cannot(outer.get());
    archive_entry* header = nullptr;
    for (;;) {
        const int code = archive_read_next_header(outer.get(), &header);
        if (code == ARCHIVE_EOF)
            return fail({.what = "the package " + name_ + " is damaged",
                         .why = "it does not contain '" + std::string(part) + "'",
                         .where = file_.path.string()});
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return cannot(outer.get());
        std::string_view member =
            archive_entry_pathname(header) == nullptr ? "" : archive_entry_pathname(header);
        member = member.substr(member.rfind('/') + 1);
        if (!member.starts_with(std::string(part) + "-") || !member.ends_with(".tar.zst")) continue;
        const Archive inner = make_archive();
        archive_read_support_filter_zstd(inner.get());
        archive_read_support_format_tar(inner.get());
        archive_read_support_format_empty(inner.get());
        Member packed{.outer = outer.get()};
        if (archive_read_open(inner.get(), &packed, nullptr, Member::read, nullptr) != ARCHIVE_OK)
            return cannot(inner.get());
        return TarReader(inner.get(), name_, file_.path).visit_all(visit);
    }
}

Result<std::map<std::string, std::string>> PackageArchive::info() const {
    static constexpr auto wanted = std::to_array<std::string_view>(
        {"index.json", "paths.json", "files", "has_prefix", "no_link", "link.json"});
    std::map<std::string, std::string> found;
    std::uint64_t size = 0; // total of all wanted files
    // The visitor returns an error to end the reading early once it has everything.
    bool complete = false;
    auto done = read("info", [&](const ArchiveEntry& entry, const ReadMore& more) -> Status {
        if (!entry.path.starts_with("info/") || entry.type != EntryType::file) {
            // In a .tar.bz2 gigabytes may follow.
            complete =
                format_ == Format::tar_bz2 && found.contains("index.json") && found.contains("paths.json");
            if (complete) return fail(Error{});
            return {};
        }
        const std::string name = entry.path.substr(5);
        if (std::ranges::find(wanted, name) == wanted.end()) return {};
        size += entry.size;
        if (size > largest_info)
            return fail(
                {.what = "the package " + name_ + " is unsafe",
                 .why = "its metadata has " + std::to_string(size) + " bytes, including " + entry.path,
                 .where = file_.path.string()});
        std::string content; // grows with the data, since the size in a header may be wrong
        for (;;) {
            auto bytes = TRY(more());
            if (bytes.empty()) break;
            content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        }
        found[name] = std::move(content);
        return {};
    });
    if (!done && !complete) return fail(std::move(done.error()));
    return found;
}

Status PackageArchive::payload(const VisitEntry& visit) const {
    return read("pkg", [&](const ArchiveEntry& entry, const ReadMore& more) -> Status {
        if (entry.path == "info" || entry.path.starts_with("info/")) return {};
        return visit(entry, more);
    });
}

} // namespace containerize::conda

#include "wheel/archive.h"

#include "core/filesystem.h"
#include "core/text.h"
#include "util/digest.h"
#include "util/user_text.h"
#include "wheel/names.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <sys/stat.h>

namespace containerize::wheel {

namespace {

/// More than RECORD of any package has, but harmless.
constexpr std::uint64_t largest_text = 64U << 20U;
/// More than any package contains, so a larger size indicates a decompression bomb.
constexpr std::uint64_t largest_wheel = std::uint64_t{64} << 30U;

std::unexpected<Error> damaged(const OpenFile& file, const std::string& wheel, std::string why) {
    return fail({.what = "the wheel " + wheel + " is damaged",
                 .why = std::move(why),
                 .where = file.path.string(),
                 .hint = "Download it again. If the error remains, tell the package's maintainers."});
}

/// The start of a name, for messages: it may have any bytes.
std::string shown(std::string_view name) {
    std::string start(name.substr(0, 200));
    if (!is_utf8(start))
        std::ranges::replace_if(
            start, [](unsigned char c) { return c >= 0x80; }, '?');
    return start;
}

std::unexpected<Error> unsafe(const OpenFile& file, const std::string& wheel, const std::string& path,
                              std::string why) {
    return fail({.what = "the wheel " + wheel + " is unsafe",
                 .why = "'" + shown(path) + "' " + std::move(why),
                 .where = file.path.string(),
                 .hint = "Do not install it. Report this to the package's maintainers."});
}

std::unexpected<Error> invalid(const OpenFile& file, const std::string& wheel, const Error& error) {
    return fail({.what = "the wheel " + wheel + " cannot be installed",
                 .why = what_and_why(error),
                 .where = file.path.string(),
                 .hint = error.hint.empty()
                             ? "Request another version of the package, or try --installer pip-tree."
                             : error.hint});
}

std::string path_in_image(const Place& place) {
    return std::string(directory_of(place.scheme)) + "/" + place.path;
}

/// What the names and sizes of all files tell, and the texts of .dist-info.
class Survey {
public:
    Survey(const OpenFile& file, const std::string& wheel) : file_(file), wheel_(wheel) {}

    Status note(const ZipMember& member) {
        const auto refuse = [&](std::string why) {
            return unsafe(file_, wheel_, member.name, std::move(why));
        };
        if (member.encrypted) return refuse("is encrypted");
        const auto name = clean_path(member.name);
        if (member.name.ends_with('/')) return note_directory(member, name);
        if (S_ISLNK(member.mode)) return refuse("is a link");
        if ((member.mode & S_IFMT) != 0 && !S_ISREG(member.mode)) return refuse("is not a file");
        auto place = place_of(member.name);
        if (!place) return refuse(place.error().what);
        size_ += member.size;
        if (member.size > largest_wheel || size_ > largest_wheel)
            return refuse("makes it larger than " + std::to_string(largest_wheel) + " bytes");
        const auto path = path_in_image(*place);
        const auto [known, is_new] = by_path_.emplace(path, std::pair(member.size, member.crc));
        if (!is_new && known->second != std::pair(member.size, member.crc))
            return refuse("is in it twice, with different content");
        if (!is_new) return {};
        note_parents(path);
        note_dist_info(*place);
        TRY(read_text(member, name));
        files.emplace_back(member, std::move(*place));
        return {};
    }

    /// Checks what can only be checked in the end, and returns the texts.
    Result<DistInfo> finish() {
        for (const auto& directory : directories_)
            if (by_path_.contains(directory))
                return unsafe(file_, wheel_, directory, "is a file and also a directory");
        auto info = find_dist_info();
        if (!info) return invalid(file_, wheel_, info.error());
        if (auto checked = check(*info); !checked) return invalid(file_, wheel_, checked.error());
        return info;
    }
    [[nodiscard]] std::uint64_t size() const { return size_; }

    std::vector<std::pair<ZipMember, Place>> files;

private:
    // Directories themselves are not installed.
    Status note_directory(const ZipMember& member, const std::string& name) {
        if (name.empty() && member.name != "./")
            return unsafe(file_, wheel_, member.name, "points outside the directory of the installation");
        if (const auto place = place_of(member.name)) {
            note_dist_info(*place);
            const auto path = path_in_image(*place);
            directories_.insert(path);
            note_parents(path);
        }
        return {};
    }

    void note_parents(std::string_view path) {
        for (auto end = path.rfind('/'); end != path.npos; end = path.rfind('/')) {
            path = path.substr(0, end);
            if (!directories_.emplace(path).second) break;
        }
    }

    /// Also one in NAME.data/purelib: nobody could tell which of them describes the package.
    void note_dist_info(const Place& place) {
        auto top = place.path.substr(0, place.path.find('/'));
        if (place.scheme == Scheme::site_packages && top.ends_with(".dist-info"))
            dist_infos_.insert(std::move(top));
    }

    Status read_text(const ZipMember& member, const std::string& name) {
        const auto slash = name.find('/');
        if (slash == name.npos || !std::string_view(name).substr(0, slash).ends_with(".dist-info")) return {};
        const auto file = std::string_view(name).substr(slash + 1);
        if (file != "METADATA" && file != "WHEEL" && file != "RECORD" && file != "entry_points.txt")
            return {};
        if (member.size > largest_text)
            return unsafe(file_, wheel_, member.name, "has " + std::to_string(member.size) + " bytes");
        auto text = content_of(member);
        if (!text) return damaged(file_, wheel_, text.error().what);
        texts_.emplace(name, std::move(*text));
        return {};
    }

    Result<std::string> content_of(const ZipMember& member) {
        std::string text; // grows with the data, since the size in a header may be wrong
        TRY(reader_.begin(member));
        for (;;) {
            const auto bytes = TRY(reader_.read());
            if (bytes.empty()) return text;
            text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        }
    }

    Result<DistInfo> find_dist_info() {
        if (dist_infos_.empty()) return fail({.what = "it has no .dist-info directory"});
        if (dist_infos_.size() > 1)
            return fail(
                {.what = "it has several .dist-info directories",
                 .why = shown(joined(std::set<std::string>(dist_infos_.begin(), dist_infos_.end()), ", "))});
        DistInfo info{
            .directory = *dist_infos_.begin(), .metadata = {}, .wheel = {}, .record = {}, .entry_points = {}};
        for (const auto& [name, text, must_exist] :
             {std::tuple("METADATA", &info.metadata, true), std::tuple("WHEEL", &info.wheel, true),
              std::tuple("RECORD", &info.record, true),
              std::tuple("entry_points.txt", &info.entry_points, false)}) {
            const auto found = texts_.find(info.directory + "/" + name);
            if (found != texts_.end())
                *text = std::move(found->second);
            else if (must_exist)
                return fail({.what = "it has no " + std::string(name) + " file"});
        }
        return info;
    }

    Status check(const DistInfo& info) const {
        const auto wanted = normalised_name(wheel_.substr(0, wheel_.find('-')));
        const auto metadata = parse_metadata(info.metadata);
        if (metadata.name.empty() || metadata.version.empty())
            return fail({.what = "METADATA in it has no name or no version"});
        if (normalised_name(metadata.name) != wanted)
            return fail({.what = "it is another package",
                         .why = "METADATA in it names '" + shown(metadata.name) + "'"});
        if (!normalised_name(info.directory).starts_with(wanted + "-"))
            return fail({.what = "it is another package",
                         .why = "it has the directory '" + shown(info.directory) + "'"});
        TRY(check_wheel_version(info.wheel));
        TRY(parse_record(info.record));
        TRY(parse_entry_points(info.entry_points));
        return {};
    }

    const OpenFile& file_;
    const std::string& wheel_;
    std::uint64_t size_ = 0;
    ZipReader reader_{file_};
    /// Path in the image -> size and checksum.
    std::unordered_map<std::string, std::pair<std::uint64_t, std::uint32_t>> by_path_;
    std::unordered_set<std::string> directories_; ///< paths in the image
    std::unordered_set<std::string> dist_infos_;
    std::map<std::string, std::string> texts_; ///< by name in the archive
};

/// What RECORD says of the files, against what they are.
class RecordCheck {
public:
    explicit RecordCheck(const std::vector<RecordRow>& rows) {
        for (const auto& row : rows)
            rows_.emplace(clean_path(row.path), &row);
    }

    void note(const std::string& name, std::uint64_t size, const std::string& sha256) {
        const auto row = rows_.find(name);
        if (row == rows_.end()) {
            // A list cannot have its own checksum, and signatures follow it.
            if (!name.ends_with(".dist-info/RECORD.jws") && !name.ends_with(".dist-info/RECORD.p7s"))
                unlisted_.note(name);
            return;
        }
        const auto& [path, wanted_digest, wanted_size] = *row->second;
        const auto digest =
            std::string_view(wanted_digest).substr(0, wanted_digest.find_last_not_of('=') + 1);
        if ((digest.starts_with("sha256=") && digest != record_digest(sha256)) ||
            (!wanted_size.empty() && wanted_size != std::to_string(size)))
            wrong_.note(name);
        rows_.erase(row);
    }

    [[nodiscard]] std::vector<std::string> warnings(const std::string& wheel) {
        for (const auto& [name, row] : rows_)
            missing_.note(row->path);
        std::vector<std::string> warnings;
        const auto say = [&](const Files& files, const char* what) {
            if (files.count != 0)
                warnings.push_back(
                    "RECORD of the wheel " + wheel + " " + what + ": '" + shown(files.first) + "'" +
                    (files.count == 1 ? "" : " and " + std::to_string(files.count - 1) + " more"));
        };
        say(wrong_, "has wrong checksums or sizes");
        say(unlisted_, "does not list all files");
        say(missing_, "lists files that do not exist");
        return warnings;
    }

private:
    struct Files {
        std::size_t count = 0;
        std::string first;

        void note(const std::string& name) {
            if (count++ == 0) first = name;
        }
    };
    std::map<std::string, const RecordRow*> rows_; ///< without a file so far
    Files wrong_, unlisted_, missing_;
};

} // namespace

Result<WheelArchive> WheelArchive::open(const OpenFile& file, std::string name) {
    if (!name.ends_with(".whl") || std::ranges::count(name, '-') < 4)
        return fail({.what = "'" + name + "' is not a wheel",
                     .why = "wheels are named NAME-VERSION-PYTHON-ABI-PLATFORM.whl",
                     .where = file.path.string()});
    WheelArchive wheel(file, std::move(name));
    const auto members = read_zip_directory(file);
    if (!members) return damaged(file, wheel.name_, members.error().what);
    Survey survey(wheel.file_, wheel.name_);
    for (const auto& member : *members)
        TRY(survey.note(member));
    wheel.info_ = TRY(survey.finish());
    wheel.unpacked_size_ = survey.size();
    wheel.files_ = std::move(survey.files);
    return wheel;
}

Result<std::vector<std::string>> WheelArchive::payload(const VisitEntry& visit) const {
    const auto rows = TRY(parse_record(info_.record));
    RecordCheck check(rows);
    ZipReader reader(file_);
    Sha256 digest;
    const ReadMore read = [&]() -> Result<std::span<const std::byte>> {
        auto bytes = reader.read();
        if (!bytes) return damaged(file_, name_, std::move(bytes.error().what));
        digest.update(bytes->data(), bytes->size());
        return bytes;
    };
    for (const auto& [member, place] : files_) {
        if (auto begun = reader.begin(member); !begun)
            return damaged(file_, name_, std::move(begun.error().what));
        const bool executable = S_ISREG(member.mode) && (member.mode & 0111U) != 0;
        TRY(visit({.place = place,
                   .mode = executable ? mode_t{0755} : mode_t{0644},
                   .mtime = member.mtime,
                   .size = member.size},
                  read));
        for (bool ended = false; !ended;) // what was not visited is checked, too
            ended = TRY(read()).empty();
        check.note(clean_path(member.name), member.size, digest.finish());
    }
    return check.warnings(name_);
}

} // namespace containerize::wheel

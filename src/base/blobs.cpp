#include "base/blobs.h"

#include "core/fd.h"
#include "core/filesystem.h"
#include "core/open_file.h"
#include "core/read_write.h"
#include "util/digest.h"
#include "util/json.h"

#include <algorithm>
#include <cerrno>

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>

#include <nlohmann/json.hpp>

namespace containerize::base {

namespace {

using nlohmann::json;

constexpr std::size_t piece = 1U << 20U;
/// An index may list indexes.
constexpr unsigned deepest_index = 3;

std::unexpected<Error> unusable(std::string where, std::string why) {
    return fail({.what = "cannot use the image", .why = std::move(why), .where = std::move(where)});
}

Result<std::string> all_of(const ReadMore& read, std::uint64_t limit, const std::string& where) {
    std::string text;
    for (;;) {
        auto bytes = TRY(read());
        if (bytes.empty()) return text;
        if (bytes.size() > limit - text.size())
            return unusable(where, "its manifest or configuration is larger than " +
                                       std::to_string(limit >> 20U) + " MiB");
        text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
}

/// Files by name, in a directory or a tar archive.
class Files {
public:
    explicit Files(fs::path place) : place_(std::move(place)) {}
    Files(const Files&) = delete;
    Files& operator=(const Files&) = delete;
    virtual ~Files() = default;
    virtual Result<ReadMore> open(const std::string& name) = 0;

    Result<std::string> read(const std::string& name, std::uint64_t limit) {
        auto source = TRY(open(name));
        return all_of(source, limit, place_.string());
    }
    [[nodiscard]] std::string where() const { return place_.string(); }
    [[nodiscard]] const fs::path& place() const { return place_; }

private:
    fs::path place_;
};

class DirectoryFiles : public Files {
public:
    using Files::Files;
    Result<ReadMore> open(const std::string& name) override { return read_pieces(place() / name); }
};

class ArchiveFiles : public Files {
public:
    using Files::Files;

    // An archive has no index: it is searched from its start.
    Result<ReadMore> open(const std::string& name) override {
        auto wanted = name;
        // Older archives have a link in place of a layer that several images share.
        for (unsigned links = 0; links < 2; ++links) {
            std::shared_ptr<archive> tar(archive_read_new(), archive_read_free);
            // Not all filters: some start programs of the machine.
            for (const auto support : {archive_read_support_filter_gzip, archive_read_support_filter_bzip2,
                                       archive_read_support_filter_xz, archive_read_support_filter_zstd,
                                       archive_read_support_format_tar})
                support(tar.get());
            if (archive_read_open_filename(tar.get(), place().c_str(), piece) != ARCHIVE_OK)
                return damaged(*tar);
            auto link = TRY(seek(*tar, wanted));
            if (link.empty()) return content(std::move(tar));
            wanted = (fs::path(wanted).parent_path() / link).lexically_normal().string();
        }
        return missing(name);
    }

private:
    std::unexpected<Error> damaged(archive& tar) const {
        const char* why = archive_error_string(&tar);
        return fail({.what = "cannot read the image archive",
                     .why = why == nullptr ? "it is damaged" : why,
                     .where = where(),
                     .hint = "Create it again."});
    }
    std::unexpected<Error> missing(const std::string& name) const {
        return fail({.what = "the image archive is incomplete",
                     .why = "it has no '" + name + "'",
                     .where = where(),
                     .hint = "Create it again. oci-archive: and docker-archive: are different formats."});
    }

    /// Moves to the member. Returns its target if it is a link, otherwise "".
    Result<std::string> seek(archive& tar, const std::string& name) {
        archive_entry* entry = nullptr;
        for (;;) {
            const int code = archive_read_next_header(&tar, &entry);
            if (code == ARCHIVE_EOF) return missing(name);
            if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return damaged(tar);
            const char* found = archive_entry_pathname(entry);
            if (found == nullptr || fs::path(found).lexically_normal() != fs::path(name)) continue;
            if (archive_entry_filetype(entry) == AE_IFREG) return std::string();
            const char* link = archive_entry_symlink(entry);
            if (link == nullptr) return missing(name);
            return std::string(link);
        }
    }

    ReadMore content(std::shared_ptr<archive> tar) {
        auto buffer = std::make_shared<std::vector<std::byte>>(piece);
        return [this, tar = std::move(tar), buffer]() -> Result<std::span<const std::byte>> {
            const la_ssize_t got = archive_read_data(tar.get(), buffer->data(), buffer->size());
            if (got < 0) return damaged(*tar);
            return std::span<const std::byte>(*buffer).first(static_cast<std::size_t>(got));
        };
    }
};

/// An OCI image layout: blobs/sha256/DIGITS, and an index.
class OciLayout : public Blobs {
public:
    OciLayout(std::unique_ptr<Files> files, std::string tag)
        : files_(std::move(files)), tag_(std::move(tag)) {}

    Result<ImageInfo> info() override {
        auto index = TRY(files_->read("index.json", largest_manifest));
        return read_image(index, {}, tag_, files_->where(),
                          [this](const Descriptor& descriptor, std::uint64_t limit) {
                              return files_->read(name_of(descriptor), limit);
                          });
    }
    Result<ReadMore> open(const Descriptor& layer, const Descriptor*) override {
        return files_->open(name_of(layer));
    }

private:
    static std::string name_of(const Descriptor& descriptor) {
        return "blobs/sha256/" + descriptor.digest.substr(descriptor.digest.find(':') + 1);
    }
    std::unique_ptr<Files> files_;
    std::string tag_;
};

/// The output of `docker save`: layers have no digests of their own, but their diff_ids are verified.
class DockerArchive : public Blobs {
public:
    DockerArchive(std::unique_ptr<Files> files, std::string tag)
        : files_(std::move(files)), tag_(std::move(tag)) {}

    Result<ImageInfo> info() override {
        auto text = TRY(files_->read("manifest.json", largest_manifest));
        const auto manifest = parse_json_quietly(text);
        auto chosen = TRY(choose_image(manifest));
        auto config_text = TRY(files_->read(text_of(chosen, "Config"), largest_config));
        auto config = TRY(parse_config(config_text, files_->where()));
        ImageInfo info{.digest = "sha256:" + sha256(config_text), .config = std::move(config)};
        for (auto& layer : texts_of(chosen, "Layers"))
            info.layers.push_back({.name = std::move(layer)});
        // Only the diff_ids verify the layers.
        if (info.layers.size() != info.config.diff_ids.size() || info.layers.size() > most_layers)
            return unusable(files_->where(),
                            "its configuration lists " + std::to_string(info.config.diff_ids.size()) +
                                " layers, and the archive has " + std::to_string(info.layers.size()));
        return info;
    }
    Result<ReadMore> open(const Descriptor& layer, const Descriptor*) override {
        return files_->open(layer.name);
    }

private:
    Result<json> choose_image(const json& manifest) {
        if (!manifest.is_array() || manifest.empty())
            return unusable(files_->where(), "its manifest.json lists no image");
        std::string tags;
        for (const auto& image : manifest) {
            if (!image.is_object()) return unusable(files_->where(), "its manifest.json is damaged");
            if (tag_.empty() && manifest.size() == 1) return image;
            for (const auto& name : texts_of(image, "RepoTags")) {
                // Tools write the registry in front of what the user typed.
                if (name == tag_ || (!tag_.empty() && name.ends_with("/" + tag_))) return image;
                tags += (tags.empty() ? "" : ", ") + name;
            }
        }
        return fail_input(tag_.empty() ? "there are several images" : "there is no image '" + tag_ + "'",
                          "available images: " + tags, files_->where(), "Append ':' and one of these.");
    }

    std::unique_ptr<Files> files_;
    std::string tag_;
};

/// `after` is called after each read, with the descriptor and the position in the file.
ReadMore read_pieces(const fs::path& file, Fd fd, const std::function<void(int, off_t)>& after) {
    auto opened = std::make_shared<Fd>(std::move(fd));
    auto buffer = std::make_shared<std::vector<std::byte>>(piece);
    return [opened, buffer, file, after, end = off_t{0}]() mutable -> Result<std::span<const std::byte>> {
        const auto got = read_all(opened->get(), buffer->data(), buffer->size());
        if (got < 0) return fail_errno("cannot read a blob of the image", file.string());
        end += got;
        after(opened->get(), end);
        return std::span<const std::byte>(*buffer).first(static_cast<std::size_t>(got));
    };
}

} // namespace

Result<ReadMore> read_pieces(const fs::path& file) {
    auto opened = TRY(open_regular(file));
    return read_pieces(file, std::move(opened), [](int, off_t) {});
}

Result<ReadMore> consume_pieces(const fs::path& file) {
    Fd opened(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    if (!opened) return fail_errno("cannot read a blob of the image", file.string());
    return read_pieces(file, std::move(opened), [given_back = off_t{0}](int fd, off_t end) mutable {
        constexpr off_t step = 8U << 20U;
        if (end - given_back < step) return;
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, given_back, end - given_back);
        given_back = end;
    });
}

std::unique_ptr<Blobs> open_layout(const Reference& reference) {
    switch (reference.kind) {
    case Reference::Kind::oci_directory:
        return std::make_unique<OciLayout>(std::make_unique<DirectoryFiles>(reference.path), reference.tag);
    case Reference::Kind::oci_archive:
        return std::make_unique<OciLayout>(std::make_unique<ArchiveFiles>(reference.path), reference.tag);
    default:
        return std::make_unique<DockerArchive>(std::make_unique<ArchiveFiles>(reference.path), reference.tag);
    }
}

Result<ImageInfo> read_image(const std::string& document, std::string digest, const std::string& tag,
                             const std::string& where, const FetchDocument& fetch) {
    const auto verified = [&](const Descriptor& descriptor, std::uint64_t limit) -> Result<std::string> {
        auto text = fetch(descriptor, limit);
        if (text && "sha256:" + sha256(*text) != descriptor.digest)
            return fail(
                {.what = "cannot use the image",
                 .why = "its manifest or configuration has the digest sha256:" + sha256(*text) +
                        ", and not " + descriptor.digest,
                 .where = where,
                 .hint = "Try again. If the error remains, something changes the download on the way."});
        return text;
    };
    std::string text = document;
    std::string index_digest;
    std::string wanted_tag = tag;
    for (unsigned depth = 0; depth < deepest_index; ++depth) {
        auto parsed = TRY(parse_document(text, where));
        if (parsed.manifest) {
            auto config_text = TRY(verified(parsed.manifest->config, largest_config));
            auto config = TRY(parse_config(config_text, where));
            if (config.diff_ids.size() != parsed.manifest->layers.size())
                return unusable(where, "its configuration lists " + std::to_string(config.diff_ids.size()) +
                                           " layers, and its manifest lists " +
                                           std::to_string(parsed.manifest->layers.size()));
            TRY(check_architecture(config.platform.architecture, where));
            return ImageInfo{.digest = std::move(digest),
                             .index_digest = std::move(index_digest),
                             .config = std::move(config),
                             .layers = std::move(parsed.manifest->layers)};
        }
        auto chosen = TRY(choose(parsed.index, this_architecture(), wanted_tag, where));
        wanted_tag.clear();
        auto next = TRY(verified(chosen, largest_manifest));
        if (index_digest.empty()) index_digest = digest;
        digest = chosen.digest;
        text = std::move(next);
    }
    return unusable(where, "its indexes refer to each other in a circle");
}

} // namespace containerize::base

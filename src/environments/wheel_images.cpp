#include "environments/wheel_images.h"

#include "conda/cache_directory.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "image/listing.h"
#include "util/in_parallel.h"
#include "util/log.h"
#include "wheel/archive.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

namespace containerize::environments {

namespace {

/// Python refuses larger ones anyway, or takes minutes.
constexpr std::uint64_t largest_source = 64U << 20U;
/// Sources that are in memory at once.
constexpr std::size_t batch_size = 256;

Status add_wheel(const OpenFile& wheel, const std::string& name, image::Writer& writer) {
    auto archive = TRY(wheel::WheelArchive::open(wheel, name));
    const auto write = [&](const wheel::WheelEntry& entry, const wheel::ReadMore& read) -> Status {
        if (interrupted()) return fail_interrupted();
        const auto path = std::string(wheel::directory_of(entry.place.scheme)) + "/" + entry.place.path;
        TRY(writer.begin_file(path, {.mode = entry.mode, .mtime = entry.mtime}));
        for (;;) {
            const auto bytes = TRY(read());
            if (bytes.empty()) break;
            TRY(writer.append(bytes));
        }
        return writer.end_file();
    };
    const auto warnings = TRY(archive.payload(write));
    for (const auto& warning : warnings)
        log::detail(name + ": " + warning);
    return {};
}

/// "site-packages/a/__pycache__/b.cpython-311.pyc" for "site-packages/a/b.py".
std::string path_of_byte_code(const fs::path& source, const std::string& cache_tag) {
    return source.parent_path() / "__pycache__" / (source.stem().string() + "." + cache_tag + ".pyc");
}

std::string file_name_of(const pip::ResolvedPackage& package) {
    return package.url.substr(package.url.rfind('/') + 1);
}

} // namespace

Result<WheelImages> WheelImages::open(const BuildContext& context, ByteCodeWorkers& byte_code) {
    const auto cache = TRY(conda::cache_directory(context.inputs.environment, context.options.site.cache));
    const auto fallback = context.staging / "images";
    TRY(make_directory(fallback, "cannot create a staging directory"));
    auto directory = conda::images_in(cache);
    if (const auto made = conda::make_images(cache); !made) {
        log::detail(to_string(made.error()));
        directory = fallback;
    }
    return WheelImages(context, byte_code, packages::PackageImages(std::move(directory), fallback));
}

packages::ImageKey WheelImages::key(std::string sha256, std::string part) const {
    return {.archive = std::move(sha256),
            .part = std::move(part),
            .compression = context_.options.compression,
            .block_size = context_.options.block_size};
}

std::string WheelImages::part_of_byte_code() const {
    return byte_code_.cache_tag() + "-" + byte_code_.magic();
}

Result<std::unique_ptr<image::Reader>> WheelImages::pack_files(const OpenFile& wheel, const std::string& name,
                                                               const std::string& sha256) const {
    return images_.make(key(sha256, {}), context_.writer_options(),
                        [&](image::Writer& writer) { return add_wheel(wheel, name, writer); });
}

Result<std::unique_ptr<image::Reader>> WheelImages::compile(image::Reader& files,
                                                            const std::string& sha256) const {
    std::vector<image::ListedEntry> sources;
    for (auto& entry : TRY(image::list_entries(files)))
        if (S_ISREG(entry.inode.mode) && entry.path.starts_with("site-packages/") &&
            entry.path.ends_with(".py") && entry.inode.size <= largest_source)
            sources.push_back(std::move(entry));
    const auto compile_one = [&](const image::ListedEntry& source) -> Result<std::string> {
        const auto text = TRY(image::content_of(files, source, largest_source));
        // Python replaces this path by the real one when it imports the module.
        auto compiled =
            TRY(byte_code_.compile(source.path.substr(std::string_view("site-packages/").size()), text));
        if (!compiled.reason.empty()) log::detail(source.path + ": " + compiled.reason);
        return std::move(compiled.pyc);
    };
    const auto fill = [&](image::Writer& writer) -> Status {
        TRY(writer.add_directory("site-packages", {.mode = 0755}));
        for (std::size_t first = 0; first < sources.size(); first += batch_size) {
            const auto batch =
                std::span(sources).subspan(first, std::min(batch_size, sources.size() - first));
            std::vector<std::string> compiled(batch.size());
            const auto compile_number = [&](std::size_t i) -> Status {
                // What cannot be compiled has no byte-code, as after any other installation.
                auto one = compile_one(batch[i]);
                if (!one && interrupted()) return fail(std::move(one.error()));
                if (one)
                    compiled[i] = std::move(*one);
                else
                    log::detail(batch[i].path + ": " + to_string(one.error()));
                return {};
            };
            TRY(in_parallel(context_.jobs, batch.size(), compile_number));
            for (std::size_t i = 0; i < batch.size(); ++i) {
                if (compiled[i].empty()) continue;
                TRY(writer.begin_file(path_of_byte_code(batch[i].path, byte_code_.cache_tag()),
                                      {.mode = 0644, .mtime = batch[i].inode.mtime}));
                TRY(writer.append(std::as_bytes(std::span(compiled[i]))));
                TRY(writer.end_file());
            }
        }
        return {};
    };
    return images_.make(key(sha256, part_of_byte_code()), context_.writer_options(), fill);
}

Result<std::vector<PackedWheel>> WheelImages::pack(const std::vector<pip::ResolvedPackage>& packages,
                                                   const Fetch& fetch, Stage& stage) const {
    std::vector<PackedWheel> packed(packages.size());
    // The digests of all images are compared: many, and some are large.
    TRY(in_parallel(context_.jobs, packages.size(), [&](std::size_t i) -> Status {
        if (packages[i].sha256.empty()) return {}; // not built yet
        packed[i].files = images_.find(key(packages[i].sha256, {}));
        if (byte_code_.supported())
            packed[i].byte_code = images_.find(key(packages[i].sha256, part_of_byte_code()));
        return {};
    }));
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < packages.size(); ++i)
        if (!packed[i].files) missing.push_back(i);
    const auto wheels = TRY(missing.empty() ? Result<std::vector<OpenFile>>() : fetch(missing));
    const auto pack_missing = [&](std::size_t i) -> Status {
        const auto& package = packages[missing[i]];
        stage.detail("packing " + package.name + " " + package.version);
        packed[missing[i]].files = TRY(pack_files(wheels[i], file_name_of(package), package.sha256));
        return {};
    };
    TRY(in_parallel(context_.jobs, missing.size(), pack_missing));
    if (!byte_code_.supported()) return packed;
    for (std::size_t i = 0; i < packages.size(); ++i) {
        if (packed[i].byte_code) continue;
        stage.detail("compiling byte-code of " + packages[i].name);
        packed[i].byte_code = TRY(compile(*packed[i].files, packages[i].sha256));
    }
    return packed;
}

} // namespace containerize::environments

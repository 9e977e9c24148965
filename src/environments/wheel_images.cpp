#include "environments/wheel_images.h"

#include "core/interrupt.h"
#include "environments/byte_code_image.h"
#include "environments/image_cache.h"
#include "util/in_parallel.h"
#include "util/log.h"
#include "util/timings.h"
#include "wheel/archive.h"

#include <utility>

namespace containerize::environments {

namespace {

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

} // namespace

Result<WheelImages> WheelImages::open(const BuildContext& context, ByteCodeWorkers& byte_code) {
    return WheelImages(context, byte_code, TRY(open_images(context)));
}

packages::ImageKey WheelImages::key_of_byte_code(const pip::ResolvedPackage& package) const {
    return image_key(context_, package.sha256, byte_code_.cache_tag() + "-" + byte_code_.magic());
}

Status WheelImages::find(const std::vector<pip::ResolvedPackage>& packages,
                         std::vector<PackedWheel>& packed) const {
    // The digests of all images are compared: many, and some are large.
    return in_parallel(context_.jobs, packages.size(), [&](std::size_t i) -> Status {
        if (interrupted()) return fail_interrupted();
        if (packages[i].sha256.empty()) return {}; // not built yet
        const timings::Piece piece("verifying");
        packed[i].files = images_.find(image_key(context_, packages[i].sha256));
        if (byte_code_.supported()) packed[i].byte_code = images_.find(key_of_byte_code(packages[i]));
        return {};
    });
}

Status WheelImages::compile(const pip::ResolvedPackage& package, PackedWheel& wheel) const {
    auto made = images_.make(key_of_byte_code(package), options_of_images(context_), [&](auto& writer) {
        return add_byte_code(*wheel.files, byte_code_, context_.jobs, writer);
    });
    if (!made && interrupted()) return fail(std::move(made.error()));
    // Its modules are compiled with the environment then.
    if (!made) log::detail("byte-code is not kept: " + to_string(made.error()));
    if (made) wheel.byte_code = std::move(*made);
    return {};
}

Result<std::vector<PackedWheel>> WheelImages::pack(const std::vector<pip::ResolvedPackage>& packages,
                                                   const Fetch& fetch, Stage& stage) const {
    std::vector<PackedWheel> packed(packages.size());
    TRY(find(packages, packed));
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < packages.size(); ++i)
        if (!packed[i].files) missing.push_back(i);
    const auto wheels = TRY(missing.empty() ? Result<std::vector<OpenFile>>() : fetch(missing));
    const auto pack_missing = [&](std::size_t i) -> Status {
        const auto& package = packages[missing[i]];
        const timings::Piece piece("packing");
        stage.detail("packing " + package.name + " " + package.version);
        packed[missing[i]].files = TRY(images_.make(
            image_key(context_, package.sha256), options_of_images(context_), [&](image::Writer& writer) {
                return add_wheel(wheels[i], pip::file_name_in(package.url), writer);
            }));
        return {};
    };
    TRY(in_parallel(context_.jobs, missing.size(), pack_missing));
    if (!byte_code_.supported()) return packed;
    for (std::size_t i = 0; i < packages.size(); ++i) {
        if (packed[i].byte_code) continue;
        stage.detail("compiling byte-code of " + packages[i].name);
        TRY(compile(packages[i], packed[i]));
    }
    return packed;
}

} // namespace containerize::environments

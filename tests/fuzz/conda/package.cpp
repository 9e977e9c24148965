// Package archives, linked as in an installation. The first byte selects the kind: 'c' is a .conda, 'b' a
// .tar.bz2, and 't' an uncompressed tar, in which a fuzzer's changes are not lost.
#include "conda/archive.h"
#include "conda/link.h"
#include "conda/package_image.h"
#include "harness.h"
#include "input_file.h"
#include "tar_input.h"

#include <string>

using namespace containerize;

namespace {

Result<OpenFile> archive_of(std::string_view input) {
    const char kind = input.front();
    input.remove_prefix(1);
    if (kind == 'c') return OpenFile::open(fuzz::input_file("a-1-0.conda", input));
    return OpenFile::open(
        fuzz::input_file("a-1-0.tar.bz2", kind == 't' ? fuzz::with_checksums(input) : std::string(input)));
}

void read_payload(const conda::PackageArchive& archive) {
    constexpr std::size_t enough = 10U << 20U;
    std::size_t total = 0;
    const auto read = archive.payload([&](const conda::ArchiveEntry& entry,
                                          const conda::ReadMore& more) -> Status {
        fuzz::require(!entry.path.empty() && !entry.path.starts_with('/') && !entry.path.starts_with("../") &&
                      entry.path.find("/../") == entry.path.npos && !entry.path.ends_with("/.."));
        for (;;) {
            const auto bytes = more();
            if (!bytes) return fail(Error(bytes.error()));
            total += bytes->size();
            if (bytes->empty()) return {};
            if (total > enough) return fail({.what = "enough"});
        }
    });
    [[maybe_unused]] const bool whole = fuzz::good(read);
}

image::WriterOptions uncompressed() {
    image::WriterOptions options;
    options.compression.compressor = image::Compressor::none;
    return options;
}

void link(const conda::PackageToLink& package) {
    auto infos = conda::read_packages({package}, 1);
    if (!fuzz::good(infos)) return;
    const auto image = fuzz::input_directory().path() / "image";
    auto writer = image::Writer::create(image, uncompressed());
    fuzz::require(writer.has_value());
    conda::LinkOptions how;
    how.prefix = "/data/env";
    const auto linked = conda::link_packages({package}, std::move(*infos), how, *writer, {});
    if (fuzz::good(linked)) fuzz::require(writer->finish().has_value());
    fs::remove(image);
}

void pack_and_link(const OpenFile& archive, const conda::PackageRecord& record) {
    const auto path = fuzz::input_directory().path() / "package";
    auto writer = image::Writer::create(path, uncompressed());
    fuzz::require(writer.has_value());
    if (!fuzz::good(conda::pack_package(archive, "a-1-0", *writer))) return;
    fuzz::require(writer->finish().has_value());
    auto file = open_regular(path);
    fs::remove(path);
    fuzz::require(file.has_value());
    auto reader = image::Reader::open(std::move(*file), path);
    fuzz::require(reader.has_value());
    link({.record = record,
          .image = std::move(*reader),
          .sha256 = {},
          .origin = archive.path,
          .requested = {}});
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const auto file = archive_of(fuzz::text_of(data, size));
    const auto archive = conda::PackageArchive::open(*file, "a-1-0");
    fuzz::require(archive.has_value());
    read_payload(*archive);
    const auto files = archive->info();
    if (!fuzz::good(files)) return 0;
    const auto info = conda::parse_package_info(*files, "a-1-0");
    if (fuzz::good(info)) pack_and_link(*file, info->record);
    return 0;
}

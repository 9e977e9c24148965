// Packs wheels, each once, as package images, with their byte-code beside them.
#pragma once

#include "core/error.h"
#include "core/open_file.h"
#include "environments/byte_code_workers.h"
#include "environments/environment_builder.h"
#include "image/reader.h"
#include "packages/package_images.h"
#include "pip/resolution.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace containerize::environments {

/// A wheel as images: its files by scheme ("site-packages/six.py"), and what Python made of its modules. The
/// second is null if they are to be compiled with the environment.
struct PackedWheel {
    std::unique_ptr<image::Reader> files, byte_code;
};

class WheelImages {
public:
    /// The images are for the Python that `byte_code` runs.
    static Result<WheelImages> open(const BuildContext& context, ByteCodeWorkers& byte_code);

    /// The images of these wheels, in their order. `fetch` returns those wheels that were never packed: of
    /// the packages with these numbers.
    using Fetch = std::function<Result<std::vector<OpenFile>>(const std::vector<std::size_t>& numbers)>;
    Result<std::vector<PackedWheel>> pack(const std::vector<pip::ResolvedPackage>& packages,
                                          const Fetch& fetch, Stage& stage) const;

private:
    WheelImages(const BuildContext& context, ByteCodeWorkers& byte_code, packages::PackageImages images)
        : context_(context), byte_code_(byte_code), images_(std::move(images)) {}

    Status find(const std::vector<pip::ResolvedPackage>& packages, std::vector<PackedWheel>& packed) const;
    Status compile(const pip::ResolvedPackage& package, PackedWheel& wheel) const;
    [[nodiscard]] packages::ImageKey key_of_byte_code(const pip::ResolvedPackage& package) const;

    const BuildContext& context_;
    ByteCodeWorkers& byte_code_;
    packages::PackageImages images_;
};

} // namespace containerize::environments

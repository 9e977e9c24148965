// Wheels for an environment: what pip or uv resolves, each packed only once, and linked into an image.
#pragma once

#include "core/error.h"
#include "environments/byte_code_workers.h"
#include "environments/environment_builder.h"
#include "environments/installers.h"
#include "environments/wheel_images.h"
#include "environments/wheel_linker.h"
#include "pip/resolution.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace containerize::environments {

/// Resolves files one after the other, until one has an obstacle.
Result<pip::Resolution> resolve_each(Installers& installers, const std::vector<RequirementsToInstall>& files,
                                     Stage& stage, From from, Installers::Uv which);

/// The same for files that do not depend on each other, as those of a lock, and must not name a package
/// twice. The packages are sorted by name.
Result<pip::Resolution> resolve_all(Installers& installers, const std::vector<RequirementsToInstall>& files,
                                    const std::filesystem::path& input, Stage& stage,
                                    From from = From::what_is_installed);

/// Functions that return a text say why pip or uv must install the packages itself, to follow "because"; it
/// is empty if nothing prevents linking. Call them in the order in which they are declared.
class PipWheels {
public:
    PipWheels(BuildContext& context, Installers& installers) : context_(context), installers_(installers) {}

    /// Decides which packages the environment at the prefix needs, in addition to what it has.
    Result<std::string> resolve(const std::vector<RequirementsToInstall>& files, Stage& stage);
    [[nodiscard]] const std::vector<pip::ResolvedPackage>& packages() const { return packages_; }
    /// A package that `site_packages` has and that would have to be replaced, except those in `linker`.
    [[nodiscard]] std::string obstacle_in(const std::filesystem::path& site_packages,
                                          const WheelLinker* linker) const;

    /// Starts the Python at the prefix, which compiles byte-code until stop(), or until fetch() is done.
    Status start();
    void stop();
    /// In the names of this Python's byte-code. Call start() before.
    [[nodiscard]] const std::string& cache_tag() const { return cache_tag_; }
    /// Adds wheels that are files, which the environment gets before any other.
    Status add_files(const std::vector<std::filesystem::path>& wheels, WheelLinker& linker,
                     Stage& stage) const;
    /// Finds the packages' images. Downloads, builds and packs those wheels that the cache lacks.
    Result<std::string> fetch(Stage& stage);

    /// Why not all wheels can be added to what an image has and `taken`, as WheelLinker::obstacle_to().
    Result<std::string> obstacle_to_linking(const WheelLinker& linker, const std::set<std::string>& taken);
    /// Links all wheels. They replace packages of the same names in the linker.
    Status link(WheelLinker& linker);

private:
    Result<std::vector<OpenFile>> fetch_wheels(const std::vector<std::size_t>& numbers, Stage& stage);
    Status plan(const WheelLinker& linker);

    BuildContext& context_;
    Installers& installers_;
    std::vector<pip::ResolvedPackage> packages_;
    std::unique_ptr<ByteCodeWorkers> byte_code_;
    std::optional<WheelImages> images_;
    std::string cache_tag_;
    std::vector<PackedWheel> packed_;
    std::vector<WheelPlan> plans_;
};

} // namespace containerize::environments

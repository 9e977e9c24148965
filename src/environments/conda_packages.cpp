#include "environments/conda_packages.h"

#include "conda/package_cache.h"
#include "conda/package_image.h"
#include "core/interrupt.h"
#include "core/resources.h"
#include "core/text.h"
#include "core/url.h"
#include "core/version.h"
#include "environments/image_cache.h"
#include "util/digest.h"
#include "util/in_parallel.h"
#include "util/log.h"
#include "util/timings.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace containerize::environments {

namespace {

constexpr std::uint64_t other_open_files = 256;

/// Finds the images of a plan's packages, and makes those that the cache does not have.
class Packer {
public:
    Packer(const BuildContext& context, const CondaPlan& plan, packages::PackageImages images)
        : context_(context), plan_(plan), images_(std::move(images)) {}

    Result<std::vector<conda::PackageToLink>> run() {
        TRY(allow_open_files(plan_.packages.size() + other_open_files));
        for (const auto& record : plan_.packages) {
            const auto requested = plan_.requested.find(record.name);
            packages_.push_back({.record = record,
                                 .image = nullptr,
                                 .sha256 = record.sha256,
                                 .origin = without_credentials(record.url),
                                 .requested = requested == plan_.requested.end() ? std::vector<std::string>()
                                                                                 : requested->second});
        }
        TRY(find_images());
        TRY(fetch_missing());
        TRY(pack_missing());
        return std::move(packages_);
    }

private:
    struct Missing {
        std::size_t package;
        OpenFile archive = {};
    };

    // The digests of all images are compared: many, and some are large.
    Status find_images() {
        const timings::Span span("Looking for packed packages");
        TRY(in_parallel(context_.jobs, packages_.size(), [this](std::size_t i) -> Status {
            if (interrupted()) return fail_interrupted();
            const timings::Piece piece("verifying");
            if (const auto& digest = packages_[i].record.sha256; is_hex(digest, 64))
                packages_[i].image = images_.find(image_key(context_, digest));
            return {};
        }));
        for (std::size_t i = 0; i < packages_.size(); ++i)
            if (!packages_[i].image) missing_.push_back({.package = i});
        return {};
    }

    Status fetch_missing() {
        std::vector<conda::PackageRecord> records;
        for (const auto& [package, archive] : missing_)
            records.push_back(packages_[package].record);
        if (records.empty()) return {};
        const auto& config = context_.inputs.conda_config;
        auto archives =
            TRY(conda::fetch_packages(records, plan_.channels, config,
                                      {.cache = plan_.cache,
                                       .offline = context_.options.conda.offline || config.offline,
                                       .allow_unverified = plan_.locked,
                                       .umask_bits = context_.options.umask_bits}));
        for (std::size_t i = 0; i < missing_.size(); ++i) {
            packages_[missing_[i].package].origin = archives[i].path.string();
            missing_[i].archive = std::move(archives[i]);
        }
        return {};
    }

    Status pack_missing() {
        if (missing_.empty()) return {};
        Stage stage("Packing packages");
        // Largest first, so that no large one is left alone at the end.
        std::ranges::stable_sort(missing_, std::greater(),
                                 [this](const Missing& one) { return packages_[one.package].record.size; });
        const auto pack_one = [&](std::size_t i) -> Status {
            if (interrupted()) return fail_interrupted();
            auto& package = packages_[missing_[i].package];
            const timings::Piece piece("packing");
            stage.detail(package.record.distribution());
            package.image = TRY(pack(package, std::exchange(missing_[i].archive, {})));
            return {};
        };
        TRY(in_parallel(context_.jobs, missing_.size(), pack_one));
        stage.finish(counted(missing_.size(), "package"));
        return {};
    }

    Result<std::unique_ptr<image::Reader>> pack(conda::PackageToLink& package,
                                                const OpenFile& archive) const {
        if (package.sha256.empty()) {
            package.sha256 = TRY(sha256_of_file(archive));
            if (auto found = images_.find(image_key(context_, package.sha256))) return found;
        }
        return images_.make(image_key(context_, package.sha256), options_of_images(context_),
                            [&](image::Writer& writer) {
                                return conda::pack_package(archive, package.record.distribution(), writer);
                            });
    }

    const BuildContext& context_;
    const CondaPlan& plan_;
    packages::PackageImages images_;
    std::vector<conda::PackageToLink> packages_;
    std::vector<Missing> missing_;
};

} // namespace

Result<std::vector<conda::PackageToLink>> fetch_packages(const BuildContext& context, const CondaPlan& plan) {
    auto images = TRY(open_images(context));
    auto packages = Packer(context, plan, std::move(images)).run();
    if (!packages) return fail(with_list(std::move(packages.error()), context.inputs));
    return packages;
}

Result<std::vector<conda::PackageInfo>> read_packages(const BuildContext& context,
                                                      const std::vector<conda::PackageToLink>& packages) {
    auto infos = conda::read_packages(packages, context.jobs);
    if (!infos) return fail(with_list(std::move(infos.error()), context.inputs));
    return infos;
}

Result<conda::Linked> link_packages(const BuildContext& context,
                                    const std::vector<conda::PackageToLink>& packages,
                                    std::vector<conda::PackageInfo> infos, conda::LinkOptions options,
                                    image::Writer& writer, Stage& stage) {
    options.jobs = context.jobs;
    options.umask_bits = context.options.umask_bits;
    options.tool_version = this_version;
    auto linked = conda::link_packages(packages, std::move(infos), options, writer,
                                       [&stage](std::uint64_t done) { stage.advance(done, 0); });
    if (linked)
        for (const auto& warning : linked->warnings)
            log::warn(warning);
    return linked;
}

std::string summary_of(const conda::Linked& linked) {
    return fmt::format("{}, {}, {}", counted(linked.records.size(), "package"), counted(linked.files, "file"),
                       human_bytes(linked.bytes));
}

} // namespace containerize::environments

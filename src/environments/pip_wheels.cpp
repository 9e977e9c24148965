#include "environments/pip_wheels.h"

#include "core/filesystem.h"
#include "core/interrupt.h"
#include "core/url.h"
#include "pip/distributions.h"
#include "util/digest.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace containerize::environments {

namespace {

/// `packages` are sorted.
Status check_distinct(const std::vector<pip::ResolvedPackage>& packages, const fs::path& input) {
    const auto same = std::ranges::adjacent_find(
        packages, {}, [](const auto& one) { return pip::normalised_name(one.name); });
    if (same == packages.end()) return {};
    return fail_input("this file lists " + same->name + " twice for the environment's Python", {},
                      input.string(), "Lock it again, or remove one of them.");
}

} // namespace

Result<pip::Resolution> resolve_each(Installers& installers, const std::vector<RequirementsToInstall>& files,
                                     Stage& stage, From from, Installers::Uv which) {
    pip::Resolution all;
    for (const auto& one : files) {
        auto resolution = TRY(installers.resolve(one, stage, from, which));
        std::ranges::move(resolution.packages, std::back_inserter(all.packages));
        all.obstacle = std::move(resolution.obstacle);
        if (!all.obstacle.empty()) break;
    }
    return all;
}

Result<pip::Resolution> resolve_all(Installers& installers, const std::vector<RequirementsToInstall>& files,
                                    const fs::path& input, Stage& stage, From from) {
    auto all = TRY(resolve_each(installers, files, stage, from, Installers::Uv::or_pinned));
    if (!all.obstacle.empty()) return all;
    std::ranges::sort(all.packages, {}, [](const auto& one) { return pip::normalised_name(one.name); });
    TRY(check_distinct(all.packages, input));
    return all;
}

Result<std::string> PipWheels::resolve(const std::vector<RequirementsToInstall>& files, Stage& stage) {
    auto resolution = TRY(resolve_all(installers_, files, context_.inputs.spec, stage));
    packages_ = std::move(resolution.packages);
    return std::move(resolution.obstacle);
}

std::string PipWheels::obstacle_in(const fs::path& site_packages, const WheelLinker* linker) const {
    for (const auto& present : pip::read_distributions(site_packages)) {
        const bool is_replaced = std::ranges::any_of(packages_, [&](const auto& package) {
            return pip::normalised_name(package.name) == pip::normalised_name(present.name);
        });
        if (is_replaced && (linker == nullptr || !linker->has(present.name)))
            return present.name + " must be replaced";
    }
    return {};
}

Status PipWheels::start() {
    byte_code_ = TRY(ByteCodeWorkers::start(
        {.inside = [this](std::vector<std::string> argv) { return context_.inside(std::move(argv)); },
         .python = context_.python().string(),
         .workers = context_.jobs}));
    cache_tag_ = byte_code_->cache_tag();
    images_.emplace(TRY(WheelImages::open(context_, *byte_code_)));
    return {};
}

void PipWheels::stop() {
    images_.reset();
    byte_code_.reset();
}

Status PipWheels::add_files(const std::vector<fs::path>& wheels, WheelLinker& linker, Stage& stage) const {
    std::vector<pip::ResolvedPackage> packages;
    for (const auto& wheel : wheels) {
        const auto name = wheel.filename().string();
        packages.push_back({.name = name.substr(0, name.find('-')),
                            .version = {},
                            .url = file_url(wheel.string()),
                            .sha256 = TRY(sha256_of_file(wheel))});
    }
    const auto open = [&](const std::vector<std::size_t>& numbers) -> Result<std::vector<OpenFile>> {
        std::vector<OpenFile> files;
        for (const auto number : numbers)
            files.push_back(TRY(OpenFile::open(wheels[number])));
        return files;
    };
    auto packed = TRY(images_->pack(packages, open, stage));
    for (std::size_t i = 0; i < packages.size(); ++i) {
        const auto plan = TRY(linker.plan(packages[i], packed[i]));
        TRY(linker.add(plan, packed[i]));
    }
    return {};
}

Result<std::string> PipWheels::fetch(Stage& stage) {
    std::optional<Error> not_fetched;
    auto packed = images_->pack(
        packages_,
        [&](const std::vector<std::size_t>& numbers) {
            auto wheels = fetch_wheels(numbers, stage);
            if (!wheels) not_fetched = wheels.error();
            return wheels;
        },
        stage);
    stop();
    // pip and uv know more logins and indexes; otherwise they say best what is wrong.
    if (!packed && not_fetched && !interrupted()) return to_string(*not_fetched);
    packed_ = TRY(std::move(packed));
    return std::string();
}

Result<std::vector<OpenFile>> PipWheels::fetch_wheels(const std::vector<std::size_t>& numbers, Stage& stage) {
    std::vector<pip::ResolvedPackage> wanted;
    for (const auto number : numbers)
        wanted.push_back(packages_[number]);
    stage.detail("fetching " + counted(wanted.size(), "package"));
    auto wheels = TRY(installers_.fetch_wheels(wanted));
    for (std::size_t i = 0; i < numbers.size(); ++i)
        packages_[numbers[i]] = std::move(wanted[i]); // what was built is known now
    return wheels;
}

Status PipWheels::plan(const WheelLinker& linker) {
    for (std::size_t i = plans_.size(); i < packages_.size(); ++i) {
        if (interrupted()) return fail_interrupted();
        plans_.push_back(TRY(linker.plan(packages_[i], packed_[i])));
    }
    return {};
}

Result<std::string> PipWheels::obstacle_to_linking(const WheelLinker& linker,
                                                   const std::set<std::string>& taken) {
    TRY(plan(linker));
    for (const auto& one : plans_)
        if (auto obstacle = linker.obstacle_to(one, taken); !obstacle.empty()) return obstacle;
    return std::string();
}

Status PipWheels::link(WheelLinker& linker) {
    TRY(plan(linker));
    for (const auto& package : packages_)
        linker.remove(package.name);
    // As pip does, so that of two files with one path, the same one remains.
    for (std::size_t i = packages_.size(); i-- > 0;) {
        if (interrupted()) return fail_interrupted();
        TRY(linker.add(plans_[i], packed_[i]));
    }
    packed_.clear();
    return {};
}

} // namespace containerize::environments

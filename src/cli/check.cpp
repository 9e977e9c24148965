#include "cli/command.h"
#include "core/filesystem.h"
#include "core/printable.h"
#include "gpu/fit.h"
#include "gpu/host_tree.h"
#include "manifest/manifest.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace containerize::cli {

namespace {

using nlohmann::json;

struct Checked {
    gpu::AcceleratedPackage package;
    gpu::Fit fit;
};

/// Reads the packages directly from the images, without mounting or running anything.
Result<std::vector<gpu::AcceleratedPackage>> packages_in(const fs::path& prefix) {
    auto manifest = TRY(manifest::read_manifest(prefix));
    const auto layers = TRY(manifest::open_layers(manifest, prefix));
    return gpu::accelerated_packages(gpu::LayersView(*layers));
}

json to_json(const gpu::Host& host) {
    json devices = json::array();
    for (const auto& device : host.devices)
        devices.push_back({{"vendor", device.vendor->name},
                           {"address", device.address},
                           {"name", device.name},
                           {"uuid", device.uuid},
                           {"target", device.target},
                           {"mig_instances", device.mig.size()}});
    json drivers = json::object();
    for (const auto& [vendor, driver] : host.drivers)
        if (!driver.empty()) drivers[vendor->name] = driver;
    return {{"devices", devices}, {"drivers", drivers}};
}

void print(const std::vector<Checked>& checked, const gpu::Host& host) {
    bool any = false;
    for (const auto* vendor : gpu::vendors)
        if (const auto devices = host.describe(*vendor); !devices.empty()) {
            fmt::print("This node has {}.\n", printable_line(devices));
            any = true;
        }
    if (!any) fmt::print("This node has no GPU.\n");
    if (checked.empty())
        fmt::print("The installation contains none of the packages that are checked: torch, jax, tensorflow, "
                   "cupy.\n");
    for (const auto& [package, fit] : checked) {
        fmt::print("{:8} {:28} {}\n", fit.fits ? "fits" : "does not", printable_line(package.title()),
                   printable_line(fit.reason));
        if (!package.lacks.empty()) fmt::print("{:37} It lacks {}.\n", "", printable_line(package.lacks));
    }
}

Result<int> run_check(const ShowArguments& arguments) {
    auto prefix = TRY(manifest::resolve_installation(arguments.directory));
    auto packages = TRY(packages_in(prefix));
    const auto host = gpu::discover(gpu::DirectoryView("/"));
    std::vector<Checked> checked;
    for (auto& package : packages) {
        auto fit = gpu::compare(package, host);
        checked.push_back({.package = std::move(package), .fit = std::move(fit)});
    }
    const bool fits = std::ranges::all_of(checked, [](const Checked& one) { return one.fit.fits; });
    if (arguments.as_json) {
        json list = json::array();
        for (const auto& [package, fit] : checked) {
            list.push_back(gpu::to_json(package));
            list.back().update({{"fits", fit.fits}, {"reason", fit.reason}});
        }
        const json all = {{"fits", fits}, {"host", to_json(host)}, {"packages", std::move(list)}};
        fmt::print("{}\n", all.dump(2, ' ', false, json::error_handler_t::replace));
    } else {
        print(checked, host);
    }
    return fits ? 0 : 1;
}

} // namespace

void add_check(CLI::App& app, Call& call) {
    auto* command =
        app.add_subcommand("check", "Show whether the packages of an installation can use this node's GPUs");
    const auto arguments = std::make_shared<ShowArguments>();
    add_installation(*command, arguments->directory);
    command->add_flag("--json", arguments->as_json, json_description);
    command->footer("The exit code is 0 if all of them can, else 1.");
    on(*command, call, [arguments] { return run_check(*arguments); });
}

} // namespace containerize::cli

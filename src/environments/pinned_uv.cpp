#include "environments/pinned_uv.h"

#include "conda/cache_directory.h"
#include "conda/package_cache.h"
#include "conda/virtual_packages.h"
#include "core/filesystem.h"
#include "pip/resolution.h"
#include "spec/locked_lines.h"
#include "spec/requirement_options.h"
#include "util/copy.h"
#include "util/log.h"
#include "wheel/archive.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <sys/stat.h>

namespace containerize::environments {

namespace {

constexpr std::string_view version = "0.13.9";

/// A file of PyPI, whose addresses never change.
struct Wheel {
    std::string_view machine, url, sha256;
    std::uint64_t size;
};
constexpr auto wheels = std::to_array<Wheel>(
    {{.machine = "x86_64",
      .url = "https://files.pythonhosted.org/packages/3d/aa/"
             "26d64642d808de4a652579ef950d7cd2d37f080a8babf9c67c6b75fc4c3f/"
             "uv-0.13.9-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
      .sha256 = "d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19",
      .size = 17606939},
     {.machine = "aarch64",
      .url = "https://files.pythonhosted.org/packages/57/15/"
             "94b6cd62ac3ff6550288328e8035288875197cbc183f51554b266a69877b/"
             "uv-0.13.9-py3-none-manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64.whl",
      .sha256 = "5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe",
      .size = 18026789}});

constexpr std::string_view other_index = "another index than PyPI is asked";

bool names_index(const spec::RequirementLine& line) {
    return spec::has_option(line.text, "--index-url") || spec::has_option(line.text, "--no-index");
}

Result<const Wheel*> wheel_for_this_machine() {
    const auto machine = spec::machine_of(conda::this_subdir());
    const auto* const found = std::ranges::find(wheels, machine, &Wheel::machine);
    if (found == wheels.end()) return fail({.what = "there is no uv for this machine"});
    return found;
}

Result<OpenFile> fetch(const Wheel& wheel, const fs::path& cache, const http::Settings& http, bool offline) {
    conda::PackageRecord record;
    record.name = "uv";
    record.version = version;
    record.url = record.download_url = wheel.url;
    record.file_name = pip::file_name_in(record.url);
    record.sha256 = wheel.sha256;
    record.size = wheel.size;
    conda::Config config;
    config.http = http;
    auto files = TRY(
        conda::fetch_packages({record}, {}, config, {.cache = cache, .wheels = true, .offline = offline}));
    return std::move(files.front());
}

Result<std::string> program_in(const OpenFile& file, const Wheel& wheel) {
    const auto archive = TRY(wheel::WheelArchive::open(file, pip::file_name_in(wheel.url)));
    std::string program;
    const auto visit = [&](const wheel::WheelEntry& entry, const wheel::ReadMore& read) -> Status {
        const bool is_it = entry.place == wheel::Place{wheel::Scheme::scripts, "uv"};
        for (;;) {
            const auto piece = TRY(read());
            if (piece.empty()) return {};
            if (is_it) program.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        }
    };
    TRY(archive.payload(visit));
    if (program.empty()) return fail({.what = "the wheel of uv contains no program", .where = file.path});
    return program;
}

/// Other users of the cache cannot write there.
bool is_own_program(const fs::path& file) {
    const auto opened = conda::open_own(file);
    struct stat info {};
    return opened.file && fstat(opened.file->get(), &info) == 0 && (info.st_mode & S_IXUSR) != 0;
}

Status install(const Wheel& wheel, const fs::path& cache, const fs::path& program, const http::Settings& http,
               bool offline) {
    if (!offline)
        log::info("Note: uv " + std::string(version) + " is downloaded once from PyPI, to choose packages.");
    const auto archive = TRY(fetch(wheel, cache, http, offline));
    const auto content = TRY(program_in(archive, wheel));
    TRY(write_file(program, content, true));
    if (chmod(program.c_str(), S_IRWXU) != 0) return fail_errno("cannot use uv", program.string());
    return {};
}

} // namespace

std::string obstacle_to_pinned_uv(const std::vector<pip::Setting>& settings,
                                  const spec::Requirements& requirements, const Environment& environment) {
    for (const auto& setting : settings)
        if (setting.name == "index-url" || setting.name == "no-index") return std::string(other_index);
    if (std::ranges::any_of(requirements.lines, names_index)) return std::string(other_index);
    const auto of_uv = std::ranges::find_if(
        environment, [](const auto& variable) { return variable.first.starts_with("UV_"); });
    return of_uv == environment.end() ? "" : of_uv->first + " is set, but uv is not on PATH";
}

Result<PinnedUv> pinned_uv(const BuildContext& context, const http::Settings& http, bool offline) {
    const auto& wheel = *TRY(wheel_for_this_machine());
    const auto cache = TRY(conda::cache_directory(context.inputs.environment, context.options.site.cache));
    const auto own = conda::places_in(cache, context.inputs.environment).uv;
    const bool is_kept = conda::make_uv(own) && conda::is_uv_safe(own);
    const auto directory = is_kept ? conda::uv_in(own) : context.staging / "uv";
    TRY(make_directories(directory, "cannot create a directory for uv"));
    auto program = directory / ("uv-" + std::string(version) + "-" + std::string(wheel.machine));
    if (!is_own_program(program)) TRY(install(wheel, cache, program, http, offline));
    utimensat(AT_FDCWD, directory.c_str(), nullptr, 0); // for conda::clean_cache()
    PinnedUv uv{.program = std::move(program), .cache = directory / "cache"};
    if (context.inputs.settings.base.is_host() || !is_kept) return uv;
    // A base shows the staging directory, and not the cache.
    const auto copy = context.staging / "uv";
    if (!quiet::exists(copy)) TRY(copy_file_with_mode(uv.program, copy, 0));
    return PinnedUv{.program = copy, .cache = context.staging / "uv-cache"};
}

} // namespace containerize::environments

#include "mounts/cold_start.h"

#include "core/cpus.h"
#include "core/filesystem.h"
#include "core/read_write.h"
#include "core/resources.h"
#include "core/text.h"
#include "core/variables.h"
#include "image/prefetch.h"
#include "manifest/launch_settings.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace containerize::mounts {

namespace {

using manifest::largest_request;
using manifest::PrefetchSetting;
using manifest::smallest_request;
using When = PrefetchSetting::When;

/// The part (1/N) of the available memory that prefetched blocks may take.
constexpr std::uint64_t share_of_memory = 16;
constexpr std::size_t most_memory = 256U << 20U;
constexpr unsigned most_decompressors = 4;
constexpr long longest_delay = 1'000'000;

PrefetchSetting setting_for(const manifest::Manifest& manifest) {
    // A mistake in the environment must not keep programs from starting.
    if (auto setting = manifest::parse_prefetch(variable(launch::prefetch_variable))) return *setting;
    auto setting = manifest::parse_prefetch(manifest.settings.prefetch);
    return setting ? *setting : PrefetchSetting{.when = When::never};
}

std::uint64_t stripe_size_of(int file) {
    std::array<std::byte, 4096> layout;
    const auto size = fgetxattr(file, "lustre.lov", layout.data(), layout.size());
    return size <= 0 ? 0 : stripe_size(std::span(layout).first(static_cast<std::size_t>(size)));
}

unsigned idle_cpus() {
    const auto cpus = static_cast<unsigned>(allowed_cpus().size());
    return std::clamp(cpus, 2U, most_decompressors + 1) - 1;
}

/// Whether no runnable program waits for a core while this thread occupies one. Lowering the thread's
/// priority would not do instead: a request for a block that is being decompressed would wait for a starved
/// thread.
bool has_idle_core() {
    std::ifstream file("/proc/loadavg");
    std::string average;
    long running = 0;
    file >> average >> average >> average >> running;
    return running <= sysconf(_SC_NPROCESSORS_ONLN);
}

} // namespace

std::filesystem::path profile_of(const std::filesystem::path& image) {
    return image.string() + std::string(image::profile_suffix);
}

Result<image::Profile> read_profile(int file, const std::filesystem::path& path, const std::string& digest) {
    std::string text(image::largest_profile + 1, '\0');
    const auto size = read_all_at(file, text.data(), text.size(), 0);
    if (size < 0) return fail_errno("cannot read the profile", path.string());
    text.resize(static_cast<std::size_t>(size));
    auto profile = image::parse_profile(text, path);
    if (profile && profile->image != digest)
        return fail({.what = "this profile belongs to another image",
                     .where = path.string(),
                     .hint = "Record it again with `containerize profile --replace`."});
    return profile;
}

std::uint64_t stripe_size(std::span<const std::byte> layout) {
    // lustre_user.h: magic and pattern (4 bytes each), the object's id (16), the size of a stripe (4).
    constexpr std::array<std::uint32_t, 2> magics = {0x0BD10BD0, 0x0BD30BD0};
    constexpr std::size_t size_at = 24;
    std::uint32_t magic = 0;
    std::uint32_t size = 0;
    if (layout.size() < size_at + sizeof size) return 0;
    std::memcpy(&magic, layout.data(), sizeof magic);
    std::memcpy(&size, layout.data() + size_at, sizeof size);
    const bool plausible = size >= smallest_request && size <= largest_request;
    return std::ranges::find(magics, magic) != magics.end() && plausible ? size : 0;
}

ColdStart cold_start_of(const manifest::Manifest& manifest, const std::filesystem::path& directory,
                        std::span<const image::Layers::ImageFile> images) {
    ColdStart cold_start;
    const auto setting = setting_for(manifest);
    const bool wanted = setting.when == When::always || (setting.when == When::automatic &&
                                                         is_network_filesystem(filesystem_type(directory)));
    if (!wanted || images.empty()) return cold_start;
    cold_start.depth = setting.depth;
    cold_start.shape.size = setting.size;
    if (const auto stripe = stripe_size_of(images.front().file.get()); stripe != 0)
        cold_start.shape.alignment = cold_start.shape.size =
            std::max(setting.size / stripe, std::uint64_t{1}) * stripe;
    for (const auto& image : manifest.images()) {
        const auto path = profile_of(directory / image.file);
        cold_start.profiles.push_back(
            {.file = Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)),
             .path = path,
             .image = image.sha256});
    }
    return cold_start;
}

void prefetch(image::Layers& layers, const ColdStart& cold_start) {
    std::vector<image::Profile> profiles;
    for (const auto& [file, path, digest] : cold_start.profiles) {
        auto profile = file ? read_profile(file.get(), path, digest) : fail({});
        profiles.push_back(profile ? std::move(*profile) : image::Profile());
    }
    const auto memory_left = [] { return available_resources().memory; };
    image::PrefetchOptions options;
    options.shape = cold_start.shape;
    options.depth = cold_start.depth;
    options.decompressors = idle_cpus();
    options.memory = std::min<std::uint64_t>(most_memory, memory_left() / share_of_memory);
    options.idle_core = has_idle_core;
    options.memory_left = memory_left;
    layers.prefetch(profiles, options);
}

image::Instruments instruments_of_environment() {
    image::Instruments instruments;
    if (const char* delay = value_of(launch::delay_variable); delay != nullptr)
        if (const auto microseconds = to_number<long>(delay); microseconds)
            instruments.read_delay = std::chrono::microseconds(std::clamp(*microseconds, 0L, longest_delay));
    if (const char* path = value_of(launch::record_variable); path != nullptr)
        if (Fd file(open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC)); file) {
            flock(file.get(), LOCK_SH); // until this server ends: the recording process waits for that
            instruments.recorder = std::make_shared<image::Recorder>(std::move(file));
        }
    return instruments;
}

} // namespace containerize::mounts

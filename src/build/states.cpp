#include "build/states.h"

#include "build/context.h"
#include "build/record_profile.h"
#include "build/state_change.h"
#include "core/filesystem.h"
#include "core/interrupt.h"
#include "image/relayout.h"
#include "mounts/cold_start.h"
#include "mounts/staged_image.h"
#include "prefix/publish.h"
#include "prefix/records.h"
#include "prefix/states.h"
#include "util/in_parallel.h"
#include "util/log.h"
#include "util/timings.h"

#include <algorithm>
#include <chrono>
#include <ranges>
#include <utility>

#include <fmt/format.h>

namespace containerize::build {

namespace {

using manifest::Manifest;

/// Returns `state` and its ancestors, newest first.
std::vector<Manifest> line_of(unsigned state, const std::vector<Manifest>& states) {
    std::vector<Manifest> line;
    for (unsigned number = state; number != 0;) {
        const auto found = std::ranges::find(states, number, &Manifest::state);
        if (found == states.end()) break;
        line.push_back(*found);
        // A parent always has a lower number; anything else would be an endless loop.
        number = found->parent < number ? found->parent : 0;
    }
    return line;
}

/// The commands that made a state, oldest first, including those before an earlier squash.
nlohmann::json commands_of(const std::vector<Manifest>& line) {
    auto commands = nlohmann::json::array();
    for (const auto& state : std::views::reverse(line)) {
        for (const auto& earlier : state.build.value(prefix::squashed_key, nlohmann::json::array()))
            commands.push_back(earlier);
        commands.push_back(state.build.value("command", ""));
    }
    return commands;
}

/// Copies the records of the first state in `line`, and the inputs of that state and all its ancestors.
Status keep_records_of(const std::vector<Manifest>& line, const fs::path& prefix, const fs::path& records) {
    TRY(make_directories(records.parent_path()));
    std::error_code failed;
    fs::copy(prefix / prefix::state_directory(line.front().state), records, fs::copy_options::recursive,
             failed);
    if (failed) return fail_errno("cannot copy the records", records.string(), failed.value());
    // Of several inputs with the same name, the newest is kept.
    constexpr auto older = fs::copy_options::recursive | fs::copy_options::skip_existing;
    for (const auto& state : line) {
        fs::copy(prefix / prefix::state_directory(state.state) / "inputs", records / "inputs", older, failed);
        if (failed) break;
    }
    if (failed) return fail_errno("cannot copy the inputs", records.string(), failed.value());
    return {};
}

/// Blocks are copied without being read, so damage would get into an image with a new digest.
Result<std::unique_ptr<image::Layers>> open_verified(const Manifest& manifest, const fs::path& prefix,
                                                     unsigned jobs) {
    const timings::Span span("Verifying the images");
    auto files = TRY(manifest::open_images(manifest, prefix));
    const auto images = manifest.images();
    TRY(in_parallel(jobs, files.size(), [&](std::size_t i) -> Status {
        const timings::Piece piece("verifying");
        auto same = mounts::verify_image(files[i].file, files[i].path, images[i].size, images[i].sha256);
        if (!same && !interrupted()) same.error().what = "the image is damaged";
        return same;
    }));
    return image::Layers::open(std::move(files));
}

Result<std::vector<image::RecordedFile>> recorded_in(image::Layers& layers, const Manifest& manifest,
                                                     const fs::path& prefix) {
    std::vector<image::Profile> profiles;
    for (const auto& image : manifest.images())
        profiles.push_back(profile_beside(prefix, image));
    return image::recorded_files(layers, profiles);
}

/// Translates the profile to the new image, in which the same files occupy other blocks.
Status carry_profile(const std::vector<image::RecordedFile>& recorded, const manifest::ImageFile& file,
                     const fs::path& assembly) {
    if (recorded.empty()) return {};
    const auto packed = assembly / file.file;
    auto layers = TRY(image::open_layers(std::vector{packed}));
    auto blocks = image::recorded_blocks(*layers, recorded);
    if (!blocks) return fail_errno("cannot read the image", packed.string(), blocks.error());
    return write_file(mounts::profile_of(packed),
                      image::to_text({.image = file.sha256, .blocks = std::move(*blocks)}));
}

Result<Manifest> choose_state(const std::vector<Manifest>& states, const Manifest& current,
                              std::optional<unsigned> asked, const fs::path& prefix) {
    const auto hint = "`containerize log " + prefix.string() + "` lists the states.";
    if (!asked && current.parent == 0)
        return fail_input("there is no earlier state", {}, prefix.string(), hint);
    const unsigned number = asked.value_or(current.parent);
    const auto found = std::ranges::find(states, number, &Manifest::state);
    if (found == states.end())
        return fail_input("there is no state " + std::to_string(number), {}, prefix.string(), hint);
    return *found;
}

} // namespace

Result<Rollback> rollback(const inputs::BuildOptions& options, std::optional<unsigned> state) {
    auto inputs = TRY(inputs_for_change(options));
    Rollback rolled;
    auto done = with_build_context(options, inputs, [&](const Workplace& place) -> Result<BuildSummary> {
        const auto& lock = place.lock;
        auto current = TRY(prefix::read_changeable(lock.prefix));
        auto states = TRY(prefix::read_states(lock.prefix));
        auto chosen = TRY(choose_state(states, current, state, lock.prefix));
        // Change nothing if the images of the chosen state are damaged.
        TRY(manifest::open_images(chosen, lock.prefix));
        rolled = {.from = current.state, .to = chosen.state};
        if (rolled.from == rolled.to) return BuildSummary{.prefix = lock.prefix, .unchanged = true};
        StateChange change(place);
        auto commands = TRY(change.begin(chosen));
        TRY(change.finish(chosen, std::move(states)));
        return BuildSummary{.prefix = lock.prefix, .commands = commands};
    });
    if (!done) return fail(std::move(done.error()));
    return rolled;
}

Result<BuildSummary> squash(const inputs::BuildOptions& options, bool compress_anew) {
    auto inputs = TRY(inputs_for_change(options));
    const auto start = std::chrono::steady_clock::now();
    return with_build_context(options, inputs, [&](const Workplace& place) -> Result<BuildSummary> {
        auto& context = place.context;
        const auto& lock = place.lock;
        auto manifest = TRY(prefix::read_changeable(lock.prefix));
        BuildSummary summary{.prefix = lock.prefix};
        // Without an option, the layout stays as it was.
        const auto was =
            inputs::parse_layout(manifest.build.value("layout", "path")).value_or(inputs::Layout::path);
        const auto layout = options.layout.value_or(was);
        const bool is_placed_anew =
            options.layout == inputs::Layout::profile; // the profile may have changed since
        // There, small files share blocks with others that are read early, not with their neighbours.
        const bool leaves_profile = was == inputs::Layout::profile && layout == inputs::Layout::path;
        if (manifest.layers.empty() && layout == was && !is_placed_anew && !compress_anew) {
            summary.unchanged = true;
            return summary;
        }
        StateChange change(place);
        const auto layers = TRY(open_verified(manifest, lock.prefix, context.jobs));
        const auto recorded = TRY(recorded_in(*layers, manifest, lock.prefix));
        if (options.layout == inputs::Layout::profile && recorded.empty())
            return fail_input("there is no profile", "nothing records which files are read first",
                              lock.prefix.string(), "Record a profile with `containerize profile`.");
        Stage stage("Packing the image");
        auto packed = TRY(image::write_merged(
            *layers, context.image(), context.writer_options(),
            {.compress_anew = compress_anew || leaves_profile,
             .first = layout == inputs::Layout::profile ? recorded : std::vector<image::RecordedFile>(),
             .progress = [&](std::uint64_t done) { stage.advance(done, 0); }}));
        stage.finish(fmt::format("{}, {} to {}", counted(packed.files, "file"),
                                 human_bytes(packed.input_bytes), human_bytes(packed.image_bytes)));
        const timings::Span publishing("Publishing");
        TRY(prefix::check_room(lock, packed.image_bytes));
        auto commands = TRY(change.begin(manifest));
        const auto states = TRY(prefix::read_states(lock.prefix));
        const auto line = line_of(manifest.state, states);
        manifest.state = TRY(prefix::next_state(lock.prefix));
        manifest.parent = 0;
        manifest.layers.clear();
        manifest.image = {.file = prefix::free_image_name(lock.prefix), .size = 0, .sha256 = {}};
        manifest.build["files"] = packed.files;
        manifest.build["bytes"] = packed.input_bytes;
        manifest.build["layout"] = layout == inputs::Layout::profile ? "profile" : "path";
        // A build with --layout profile calls squash() itself, with the same command line.
        if (manifest.build["command"] != options.command_line)
            manifest.build[prefix::squashed_key] = commands_of(line);
        manifest.build["command"] = options.command_line;
        manifest.created = prefix::utc_now("%Y-%m-%dT%H:%M:%SZ");
        TRY(prefix::add_image(context.image(), prefix::ImageIs::of_this_build, change.assembly(),
                              manifest.image, {}));
        TRY(carry_profile(recorded, manifest.image, change.assembly()));
        const auto records = change.assembly() / prefix::state_directory(manifest.state);
        TRY(keep_records_of(line, lock.prefix, records));
        log::continue_in(records / "build.log");
        TRY(change.finish(manifest, {}));
        summary.files = packed.files;
        summary.image_bytes = packed.image_bytes;
        summary.commands = commands;
        summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        return summary;
    });
}

} // namespace containerize::build

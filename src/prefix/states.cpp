#include "prefix/states.h"

#include "core/entries.h"
#include "core/filesystem.h"
#include "core/text.h"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace containerize::prefix {

namespace {

using manifest::Manifest;

std::optional<unsigned> number_from(const std::string& name) {
    const auto number = to_number<unsigned>(name);
    return number && *number > 0 ? number : std::nullopt;
}

Result<std::vector<unsigned>> numbers_in(const fs::path& prefix) {
    std::vector<unsigned> numbers;
    std::error_code failed;
    const auto entries = entries_in(prefix / states_name, failed);
    if (failed && failed != std::errc::no_such_file_or_directory)
        return fail_errno("cannot read the directory", (prefix / states_name).string(), failed.value());
    for (const auto& entry : entries)
        if (const auto number = number_from(entry.path().filename().string())) numbers.push_back(*number);
    std::ranges::sort(numbers);
    return numbers;
}

/// Whether a manifest exists but cannot be read now. Its state must not be taken for missing and removed.
bool is_unreadable(const fs::path& manifest) {
    return quiet::exists(manifest) && !read_file(manifest);
}

/// The number of the ancestor without a parent; 0 if a state in between is missing.
unsigned beginning_of(const Manifest& current, const std::vector<Manifest>& states) {
    const Manifest* state = &current;
    while (state->parent != 0 && state->parent < state->state) {
        const auto parent = std::ranges::find(states, state->parent, &Manifest::state);
        if (parent == states.end()) return 0;
        state = &*parent;
    }
    return state->parent == 0 ? state->state : 0;
}

std::string what_to_do_with_moved(const Manifest& manifest, const fs::path& prefix) {
    if (const auto back = manifest::command_to_move_back(manifest, prefix); !back.empty())
        return "Move it back: `" + back + "`.";
    if (manifest::is_installation(manifest.prefix))
        return "Update the installation at that path, or create a new one with `containerize new`.";
    return "Something else is now at that path. Create a new installation with `containerize new`.";
}

} // namespace

fs::path state_directory(unsigned number) {
    return fs::path(states_name) / std::to_string(number);
}

std::string layer_file(unsigned state) {
    return fmt::format("{}/{:04}.sqfs", layers_name, state);
}

Result<std::vector<Manifest>> read_states(const fs::path& prefix) {
    auto current = TRY(manifest::read_manifest(prefix));
    const auto numbers = TRY(numbers_in(prefix));
    std::vector<Manifest> states;
    for (const unsigned number : numbers) {
        auto state =
            number == current.state ? current : manifest::read_manifest(prefix / state_directory(number));
        if (!state && is_unreadable(prefix / state_directory(number) / launch::manifest_name))
            return fail(std::move(state.error()));
        // Skip unfinished states of killed updates.
        if (state && state->state == number) states.push_back(std::move(*state));
    }
    // Skip states older than the current one's first ancestor: a squash or replacement was killed before it
    // had removed them.
    const unsigned first = beginning_of(current, states);
    std::erase_if(states, [first](const Manifest& state) { return state.state < first; });
    return states;
}

Result<unsigned> next_state(const fs::path& prefix) {
    const auto numbers = TRY(numbers_in(prefix));
    const auto current = manifest::read_manifest(prefix);
    return std::max(numbers.empty() ? 0 : numbers.back(), current ? current->state : 0) + 1;
}

Result<manifest::Manifest> read_changeable(const std::string& given) {
    auto prefix = TRY(manifest::resolve_installation(given));
    auto manifest = TRY(manifest::read_manifest(prefix));
    TRY(manifest::check_not_newer(manifest, prefix));
    if (manifest.prefix == prefix) return manifest;
    return fail_input("an installation that was moved cannot be updated",
                      "its programs refer to " + manifest.prefix.string(), prefix.string(),
                      what_to_do_with_moved(manifest, prefix));
}

} // namespace containerize::prefix

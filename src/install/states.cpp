#include "install/states.h"

#include "util/filesystem.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace containerize::install {

namespace {

using runtime::Manifest;

std::optional<unsigned> number_from(const std::string& name) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size() || number == 0) return std::nullopt;
    return number;
}

std::vector<unsigned> numbers_in(const fs::path& prefix) {
    std::vector<unsigned> numbers;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(prefix / states_name, missing))
        if (const auto number = number_from(entry.path().filename().string())) numbers.push_back(*number);
    std::ranges::sort(numbers);
    return numbers;
}

} // namespace

fs::path state_directory(unsigned number) {
    return fs::path(states_name) / std::to_string(number);
}

std::string layer_file(unsigned state) {
    return fmt::format("{}/{:04}.sqfs", layers_name, state);
}

Result<std::vector<Manifest>> read_states(const fs::path& prefix) {
    auto current = runtime::read_manifest(prefix);
    if (!current) return fail(std::move(current.error()));
    std::vector<Manifest> states;
    for (const unsigned number : numbers_in(prefix)) {
        auto state =
            number == current->state ? current : runtime::read_manifest(prefix / state_directory(number));
        // What a killed update left unfinished is no state.
        if (state && state->state == number) states.push_back(std::move(*state));
    }
    return states;
}

unsigned next_state(const fs::path& prefix) {
    const auto numbers = numbers_in(prefix);
    const auto current = runtime::read_manifest(prefix);
    return std::max(numbers.empty() ? 0 : numbers.back(), current ? current->state : 0) + 1;
}

Result<runtime::Manifest> read_unmoved(const std::string& given) {
    auto prefix = resolve(given);
    if (!prefix) return fail(std::move(prefix.error()));
    if (!runtime::is_installation(*prefix)) return runtime::no_installation(*prefix);
    auto manifest = runtime::read_manifest(*prefix);
    if (!manifest) return fail(std::move(manifest.error()));
    if (manifest->prefix != *prefix)
        return fail_input("an installation that was moved cannot be updated",
                          "its programs know it as " + manifest->prefix.string(), prefix->string(),
                          "Update it there, or make a new one with `containerize new`.");
    return manifest;
}

} // namespace containerize::install

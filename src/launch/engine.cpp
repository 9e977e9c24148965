#include "launch/engine.h"

#include "core/variables.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace containerize::launch {

namespace {

constexpr std::array<std::string_view, 4> names = {"auto", "native", "apptainer", "singularity"};

} // namespace

Result<Engine> parse_engine(std::string_view name) {
    const auto* found = std::ranges::find(names, name);
    if (found != names.end()) return static_cast<Engine>(std::distance(names.begin(), found));
    return fail_input("unknown engine: '" + std::string(name) + "'", {}, {},
                      "Give auto, native, apptainer or singularity.");
}

std::string to_text(Engine engine) {
    return std::string(names.at(static_cast<std::size_t>(engine)));
}

bool is_container_runtime(Engine engine) {
    return engine == Engine::apptainer || engine == Engine::singularity;
}

Result<Engine> engine_of_environment() {
    const char* name = value_of("CONTAINERIZE_ENGINE");
    if (name == nullptr || *name == '\0') return Engine::automatic;
    auto engine = parse_engine(name);
    if (!engine) engine.error().where = "CONTAINERIZE_ENGINE";
    return engine;
}

bool insists_on_native() {
    const auto engine = engine_of_environment();
    return engine && *engine == Engine::native;
}

} // namespace containerize::launch

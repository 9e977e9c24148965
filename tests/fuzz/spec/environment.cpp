// Environment files, and package lists exported by `conda list`.
#include "harness.h"
#include "input_file.h"
#include "spec/conda_environment.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::text_of(data, size);
    [[maybe_unused]] const auto kind = spec::recognise(text, "environment.yml");
    const auto file = fuzz::input_file("environment.yml", text);
    [[maybe_unused]] const bool supported = fuzz::good_input(spec::recognise_supported(file));
    [[maybe_unused]] const bool exported = fuzz::good_input(spec::read_list_export(file));
    if (const auto environment = spec::read_environment_yaml(file); fuzz::good_input(environment))
        for (const auto& [name, value] : environment->variables)
            fuzz::require(!name.empty() && name.find('=') == name.npos);
    return 0;
}

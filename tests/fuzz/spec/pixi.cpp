// Manifests of pixi.
#include "harness.h"
#include "input_file.h"
#include "spec/conda_environment.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto file = fuzz::input_file("pixi.toml", fuzz::text_of(data, size));
    const spec::LockChoice choice{.subdir = "linux-64", .environment = "test", .machine = [] {
                                      return Result<std::vector<conda::VirtualPackage>>(
                                          {{.name = "__glibc", .version = "2.36", .build = "0"}});
                                  }};
    const auto environment = spec::read_pixi_toml(file, choice);
    if (!fuzz::good_input(environment)) return 0;
    for (const auto& line : environment->pip)
        fuzz::require(line.text.find('\n') == std::string::npos);
    for (const auto& [name, value] : environment->variables)
        fuzz::require(!name.empty() && name.find('=') == name.npos);
    return 0;
}

// Requirements files, with files that they include.
#include "spec/requirements.h"

#include "harness.h"
#include "input_file.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 3);
    const auto& directory = fuzz::input_directory().path();
    const auto file = fuzz::input_file("requirements.txt", parts[0]);
    fuzz::input_file("a", parts[1]);
    fuzz::input_file("b", parts[2]);
    [[maybe_unused]] const bool read = fuzz::good_input(spec::read_requirements(file, directory));
    const std::vector<Located> lines = {{.text = std::string(parts[0]), .where = "environment.yml:1"}};
    [[maybe_unused]] const bool checked = fuzz::good_input(spec::check_requirements(lines, directory));
    return 0;
}

// .condarc, and the files with logins that conda's tools keep.
#include "conda/conda_config.h"
#include "harness.h"
#include "input_file.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 4);
    const auto& home = fuzz::input_directory().path();
    fuzz::input_file("root/etc/conda/.condarc", parts[1]);
    fuzz::input_file(".condarc", parts[0]);
    fuzz::input_file(".mamba/auth/authentication.json", parts[2]);
    fuzz::input_file(".rattler/credentials.json", parts[3]);
    const Environment environment = {{"HOME", home.string()}, {"WORD", "word"}};
    [[maybe_unused]] const bool read = fuzz::good_input(conda::read_config(environment, home / "root"));
    return 0;
}

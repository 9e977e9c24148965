// Configuration files of sites, users and tykky, and host profiles.
#include "config/config_file.h"
#include "config/host_profile.h"
#include "harness.h"
#include "input_file.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto file = fuzz::input_file("containerize.yaml", fuzz::text_of(data, size));
    for (const auto& content : {config::read_file_content(file), config::read_tykky_file(file)})
        for (const auto& mistake : content.mistakes) {
            fuzz::require(mistake.fault == Fault::input);
            fuzz::require_message(mistake);
        }
    [[maybe_unused]] const bool read = fuzz::good_input(config::read_host_profile(file.string(), {}));
    return 0;
}

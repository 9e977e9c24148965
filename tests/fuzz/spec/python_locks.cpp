// Locks and projects of Python's own tools, which are converted to lines of a requirements file.
#include "harness.h"
#include "input_file.h"
#include "spec/conda_environment.h"
#include "spec/requirements.h"

#include <variant>

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::text_of(data, size);
    const auto kind = spec::recognise(text, "lock");
    const auto* read = std::get_if<spec::ConvertedReader>(&spec::format_of(kind).reader);
    if (read == nullptr) return 0;
    const auto file = fuzz::input_file("lock", text);
    const auto converted = (*read)(file, {.subdir = "linux-64", .groups = {"dev"}, .extras = {"net"}});
    const auto plain = (*read)(file, {.subdir = "linux-64"});
    for (const auto* one : {&converted, &plain}) {
        if (!fuzz::good_input(*one)) continue;
        for (const auto& line : (*one)->lines) {
            fuzz::require(line.text.find_first_of("\r\n") == std::string::npos);
            fuzz::require(line.text.find("${") == std::string::npos);
            // Options come from us alone.
            fuzz::require(!line.text.starts_with('-') || line.text.starts_with("--extra-index-url ") ||
                          line.text.starts_with("--find-links ") || line.text.starts_with("-e "));
        }
        [[maybe_unused]] const bool good = fuzz::good_input(spec::requirements_of(**one, file));
    }
    return 0;
}

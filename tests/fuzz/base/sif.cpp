// Apptainer's image files.
#include "base/sif.h"

#include "harness.h"
#include "input_file.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto image = base::read_sif(fuzz::input_file("image.sif", fuzz::text_of(data, size)));
    if (fuzz::good(image)) fuzz::require(image->offset <= size && image->size <= size - image->offset);
    return 0;
}

// The names of distributions.
#pragma once

#include <string>
#include <string_view>

namespace containerize::wheel {

/// The name for comparisons: "Charset_Normalizer" and "charset-normalizer" become the same.
std::string normalised_name(std::string_view name);

} // namespace containerize::wheel

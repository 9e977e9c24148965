// Slurm's short form of many host names. Expanded here because scontrol may be missing where a program runs.
#pragma once

#include "util/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace containerize::cluster {

/// "n[1-3,07],gpu-[1-2]-a" -> n1, n2, n3, n07, gpu-1-a, gpu-2-a: in the order of the list, zero padding kept.
/// What is no such list, names more than a million hosts, or one of more than 255 characters, is an input
/// error.
Result<std::vector<std::string>> expand_host_list(std::string_view list);

} // namespace containerize::cluster

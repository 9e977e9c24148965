// The CPUs that this process may use. A cpu_set_t has room for 1,024, and the kernel refuses to write less
// than all that a machine may have.
#pragma once

#include <string_view>
#include <vector>

namespace containerize {

/// Far above real machines.
inline constexpr unsigned most_cpus = 1U << 16U;

/// Parses a CPU list of sysfs or Slurm: "0-3,8" -> 0, 1, 2, 3, 8. Stops at anything unexpected.
std::vector<unsigned> parse_cpu_list(std::string_view list);

/// The CPUs that this thread may use, sorted.
std::vector<unsigned> allowed_cpus();

/// Lets this thread, and what it starts, use only these CPUs, as far as its control group allows. Nothing
/// changes if the kernel refuses.
void use_cpus(const std::vector<unsigned>& cpus);
/// Undoes that.
void use_all_cpus();

} // namespace containerize

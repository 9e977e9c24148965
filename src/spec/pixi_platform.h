// What pixi's files require of a machine.
#pragma once

#include "conda/virtual_packages.h"

#include <string_view>
#include <vector>

namespace containerize::spec {

/// Whether the machine has what is `wanted`: "__glibc=2.28", which means at least that version,
/// "__archspec=1=x86_64_v3" or "__cuda >=12".
bool satisfies(const std::vector<conda::VirtualPackage>& machine, std::string_view wanted);

} // namespace containerize::spec

#include "core/version.h"

namespace containerize {

const char* const this_version = CONTAINERIZE_VERSION;

} // namespace containerize

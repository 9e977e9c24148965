#include "launch/session_format.h"

namespace containerize::launch {

const unsigned session_format = 5;

} // namespace containerize::launch

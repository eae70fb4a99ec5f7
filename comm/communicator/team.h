// When a loop over numbers is worth several threads.
#pragma once
#include "engine/loops/shares.h"

namespace skein::comm {

constexpr int64_t kTeamFrom = 1 << 16;  // elements; a shorter loop is not worth waking a team

}  // namespace skein::comm

// What both processors' batch norms must be given.
#pragma once
#include "engine/backend.h"

namespace skein {

// Throws Error if shapes or types of the arguments do not fit together, or if there are no elements.
void check_norm(const BatchNormArgs&);

}  // namespace skein

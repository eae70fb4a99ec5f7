// A process-wide choice: whether ops keep what is cheap to compute until backward, or compute it again there.
#pragma once

namespace skein {

// Set before work begins. On a CPU, images between the convolutions of a chain are then normalized twice and
// not kept; results are the same bits.
inline bool& recompute_norms() {
  static bool on = false;
  return on;
}

}  // namespace skein

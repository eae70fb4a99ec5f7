// Whether a vector's 16-bit copy is current.
#pragma once
#include "engine/vectors/narrow.h"

namespace skein {

inline bool narrow_is_current(const Tensor& x) {
  const auto n = std::static_pointer_cast<Narrow>(x.storage()->derived());
  return n && n->current;
}

}  // namespace skein

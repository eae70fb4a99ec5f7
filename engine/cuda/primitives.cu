// The primitives of backend.h on CUDA devices: none is part of this version, and each says so when called.
#include "engine/backend.h"

namespace skein::cuda {

#define ROW(name, Args)                                                                                \
  void name(const Args&) {                                                                             \
    throw Error(#name " on CUDA devices is not part of this version of Skein; run with --device cpu"); \
  }
SKEIN_PRIMITIVES(ROW)
#undef ROW

}  // namespace skein::cuda

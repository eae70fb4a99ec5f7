// The table of UCX's functions. A test may be linked with another table instead.
#include "comm/ucx/ucx_library.h"
#include "engine/base.h"

namespace skein::comm {

const Ucx& ucx() {
  static const Ucx u = open_ucx();
  return u;
}

void check(ucs_status_t s, const char* what) {
  if (s != UCS_OK) throw Error(text("UCX: ", what, ": ", ucx().ucs_status_string(s)));
}

}  // namespace skein::comm

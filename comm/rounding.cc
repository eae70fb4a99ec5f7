// The difference between a product and its rounding, which fp32 holds exactly.
#include "comm/rounding.h"

#include "engine/mixing.h"

namespace skein::comm {

void keep_rounding(const Communicator& c, const std::vector<Share>& shares, const Tensor& y,
                   const Tensor& x) {
  if (x.dtype() != kF32) return;
  std::vector<float> sent;
  for (const Share& s : shares) sent.push_back(s.factor);
  add_rounding(y.view({y.size()}), sent, c.options().wire, x.view({x.size()}));
}

}  // namespace skein::comm

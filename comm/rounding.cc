// The difference between a product and its rounding, which fp32 holds exactly.
#include "comm/rounding.h"

#include "engine/vec.h"

namespace skein::comm {
namespace {

void add_error(const Tensor& y, float factor, const Tensor& x) {
  float* to = y.data<float>();
  const float* from = x.data<float>();
#pragma omp parallel for simd schedule(static) if (x.size() > (1 << 16))
  for (int64_t i = 0; i < x.size(); ++i) {
    const float share = factor * from[i];  // as push computes it
    to[i] += share - float(bf16(share));
  }
}

}  // namespace

void keep_rounding(const Communicator& c, const std::vector<Share>& shares, const Tensor& y,
                   const Tensor& x) {
  if (c.options().wire == kF32 || x.dtype() != kF32) return;
  CHECK(y.size() == x.size() && y.dtype() == kF32, y.shape(), x.shape());
  if (!x.device().is_cuda()) {
    for (const Share& s : shares) add_error(y, s.factor, x);
    return;
  }
  const Tensor host = x.to(kCpu), error = Tensor::zeros({x.size()});
  current_stream(x.device()).sync();
  for (const Share& s : shares) add_error(error, s.factor, host.view({x.size()}));
  axpy(y.view({y.size()}), 1.f, error.to(y.device()));
}

}  // namespace skein::comm

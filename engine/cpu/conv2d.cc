// Which of our convolutions or oneDNN's computes a shape, and the checks they all rely on.
#include <algorithm>

#include "engine/cpu/direct_conv.h"
#include "engine/cpu/onednn.h"
#include "engine/cpu/profile.h"
#include "engine/cpu/winograd.h"
#include "engine/device/processor.h"

namespace skein::cpu {

namespace {

void check(const ConvArgs& c) {
  CHECK(c.x.rank() == 4 && c.w.rank() == 4 && c.y.rank() == 4, c.x.shape(), c.w.shape(), c.y.shape());
  const auto& g = c.geometry;
  CHECK(g.groups > 0 && c.x.dim(3) == c.w.dim(3) * g.groups && c.w.dim(0) % g.groups == 0, c.x.shape(),
        c.w.shape());
  const auto extent = [&](int64_t in, int64_t window) {
    return (in + 2 * g.padding - g.dilation * (window - 1) - 1) / g.stride + 1;
  };
  const Shape y{c.x.dim(0), extent(c.x.dim(1), c.w.dim(1)), extent(c.x.dim(2), c.w.dim(2)), c.w.dim(0)};
  CHECK(c.y.shape() == y, "the result should be", y, "and is", c.y.shape());
  CHECK(c.x.dtype() == c.y.dtype() && c.w.dtype() == kF32, c.x.dtype(), c.y.dtype(), c.w.dtype());
  CHECK(!c.bias || (c.bias.size() == c.w.dim(0) && c.bias.dtype() == kF32), c.bias.shape());
  CHECK(!c.residual, "the CPU's convolutions add no residual");
}

// The rule. It depends on the shapes and the processor alone, never on a race, so that a resumed run repeats
// its sums; bench/conv_bench.cc holds the measurement behind it.
//   groups       only oneDNN has them
//   1x1 data     that adds to what is there: with AVX-512 our tiles do so in registers, while oneDNN's result needs
//                another pass over both images, which costs more than its lead of a tenth in the products
//   bf16         where the processor multiplies it, oneDNN is 5 to 20 % ahead of our pairs in all else
//   3x3 in f32   Winograd does 16 products for 36. With AVX-512 it wins by 1.3 to 1.8 from 64 channels on, or 32 in a
//                data gradient; in weight gradients up to 256, above which the sums no longer fit a cache. Only Zen 4
//                was measured. With AVX2 it wins from 32 channels on.
//   AVX-512      oneDNN keeps the rest, 5 to 30 % ahead
//   1x1 forward  with AVX2, oneDNN's is 10 % faster than ours in f32; in bf16 it would need a copy of the image in f32
enum class Way { kOneDnn, kDirect, kWinograd };
enum class Pass { kForward, kData, kWeights };

Way way_with_avx512(const ConvArgs& c, Pass pass, bool pointwise) {
  static const bool halved = this_processor().halved;
  const int64_t least = std::min(c.w.dim(3), c.w.dim(0)), most = std::max(c.w.dim(3), c.w.dim(0));
  if (pass == Pass::kData && pointwise && c.beta != 0 && c.x.dtype() != kF16) return Way::kDirect;
  if (c.x.dtype() == kBF16 && native_bf16()) return Way::kOneDnn;
  const bool pays = least >= (pass == Pass::kData ? 32 : 64) && (pass != Pass::kWeights || most <= 256);
  return halved && pays && winograd_fits(c) ? Way::kWinograd : Way::kOneDnn;
}

Way way_of(const ConvArgs& c, Pass pass) {
  static const bool wide = (onednn_isa() & 0x27) == 0x27;
  if (c.geometry.groups > 1) return Way::kOneDnn;
  const bool pointwise = c.w.dim(1) == 1 && c.w.dim(2) == 1;
  if (wide) return way_with_avx512(c, pass, pointwise);
  if (winograd_fits(c) && std::min(c.w.dim(3), c.w.dim(0)) >= 32) return Way::kWinograd;
  return pass == Pass::kForward && pointwise && c.x.dtype() == kF32 ? Way::kOneDnn : Way::kDirect;
}

}  // namespace

void conv2d_forward(const ConvArgs& c) {
  const Timed timed(profile()[kConvForward]);
  check(c);
  if (c.y.size() == 0) return;
  switch (way_of(c, Pass::kForward)) {
    case Way::kOneDnn:
      return onednn_forward(c);
    case Way::kDirect:
      return direct_forward(c);
    case Way::kWinograd:
      return winograd_forward(c);
  }
}

ChannelSums conv2d_with_sums(const ConvArgs& c) {  // taking the sums here would cost another pass
  conv2d_forward(c);
  return {};
}

void conv2d_backward_data(const ConvArgs& given) {
  const Timed timed(profile()[kConvData]);
  ConvArgs c = given;
  c.bias = {};
  c.relu = false;
  check(c);
  if (c.x.size() == 0) return;
  switch (way_of(c, Pass::kData)) {
    case Way::kOneDnn:
      return onednn_backward_data(c);
    case Way::kDirect:
      return direct_backward_data(c);
    case Way::kWinograd:
      return winograd_backward_data(c);
  }
}

void conv2d_backward_weights(const ConvArgs& given) {
  const Timed timed(profile()[kConvWeights]);
  ConvArgs c = given;
  c.relu = false;
  check(c);
  CHECK(c.y.size() > 0, "a weight gradient over no pixels", c.x.shape());
  switch (way_of(c, Pass::kWeights)) {
    case Way::kOneDnn:
      return onednn_backward_weights(c);
    case Way::kDirect:
      return direct_backward_weights(c);
    case Way::kWinograd:
      return winograd_backward_weights(c);
  }
}

}  // namespace skein::cpu

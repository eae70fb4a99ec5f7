// Which of our convolutions or oneDNN's computes a shape, and the checks they all rely on.
#include <omp.h>

#include <algorithm>

#include "engine/cpu/amx_weights.h"
#include "engine/cpu/cells.h"
#include "engine/cpu/conv_way.h"
#include "engine/cpu/depthwise_conv.h"
#include "engine/cpu/direct_conv.h"
#include "engine/cpu/grouped_conv.h"
#include "engine/cpu/onednn.h"
#include "engine/cpu/profile.h"
#include "engine/cpu/winograd.h"
#include "engine/device/processor.h"
#include "engine/ops/conv2d.h"

namespace skein::cpu {

namespace {

void check(const ConvArgs& c) {
  const Shape y = conv2d_shape(c.x, c.w, c.geometry);
  CHECK(c.y.shape() == y, "the result should be", y, "and is", c.y.shape());
  CHECK(c.x.dtype() == c.y.dtype() && c.w.dtype() == kF32, c.x.dtype(), c.y.dtype(), c.w.dtype());
  CHECK(!c.bias || (c.bias.size() == c.w.dim(0) && c.bias.dtype() == kF32), c.bias.shape());
  CHECK(!c.residual, "the CPU's convolutions add no residual");
  CHECK(!c.sums.sum || (!c.bias && !c.relu), "sums are of the convolution alone");
}

double flops_of(const ConvArgs& c) { return 2. * double(c.y.size()) * double(c.w.size() / c.w.dim(0)); }

// The rule. It depends on the shapes, the processor and the number of threads, never on a race, so that a
// resumed run repeats its sums; bench/conv_bench.cc holds the measurement behind it.
//   groups       oneDNN has them; but gradients of depthwise windows of 5x5 and larger it leaves to code
//                without vectors (weights: ours is 4 to 10 times as fast) or to slower ones (data: 1 to 1.4).
//                Where a group has fewer channels than the 16 of its vectors it fills them up with zeros:
//                there ours wins by 1.2 to 3, in weight gradients by 2 to 5. From 16 on, ours wins where
//                windows are two or more pixels apart, by 1.1 to 2; with AVX-512 in sums of groups of 16, by
//                1.1 to 1.4; and in weight gradients of pairs of bf16 and with AVX2, by 1.2 to 1.8. On
//                Intel's processors with AVX-512 it wins only in weight gradients of bf16 and of windows
//                apart, by 1.4: elsewhere oneDNN does, by 1 to 3
//   1x1 data     that adds to what is there: with AVX-512 our tiles do so in registers, while oneDNN's result
//                needs another pass over both images, which costs more than its lead of a tenth in the
//                products
//   bf16         where the processor multiplies it, oneDNN leads by 5 to 20 %, but for many weights, which it
//                brings into its order at every call: there our data gradient wins by 1.05 to 1.5, our
//                forward by 1 to 1.25. In weight gradients ours wins by 1.05 to 1.4 from 64 to 1024
//                channels, but not of more than half a million weights, whose sums do not fit a cache. From
//                64 to 256 channels of images of more than 6 pixels, in weight gradients from 16 to 128,
//                Winograd in f32 does a quarter of the products, and wins by 1.05 to 2
//   bf16, AMX    oneDNN's forward wins by 1.05 to 1.8, but for 1x1 of a million weights. So does its data
//                gradient, by 1.05 to 3, below 256 thousand weights; or below 16 thousand, where it adds to
//                what is there or windows are two pixels apart: there ours wins by 1.05 to 2.6. Its weight
//                gradient wins by 1.2 to 1.7 in windows at every pixel where channels or outputs are fewer
//                than 32; ours in all others, by 1.05 to 6
//   bf16 in f32  with AVX-512, where the processor does not multiply it, or slowly: ours wins by 1.05 to 1.5
//                below 256 thousand weights, and in weight gradients up to 1024 channels
//   3x3 in f32   Winograd wins by 1.2 to 3.5 from 16 channels on, on Intel's processors with AVX-512 in
//                gradients from 32; with AVX-512 in those of weights up to 512, above which the sums no
//                longer fit a cache. Of few pixels its 36 sums for 9 weights, or the transforms of filters,
//                cost more than it saves: 1.1 to 2 times as much as what wins otherwise
//   f32 with AVX-512: our weight gradient reads images in place where oneDNN copies them, and wins by 1.05 to
//                2 from 64 channels on, in 1x1 up to 256, but not of few pixels; so do our other passes of
//                1x1 with 8 to 64 thousand weights, by 1 to 1.5. On Intel's processors oneDNN wins in 1x1, by
//                1 to 1.4, but for data gradients of half a million weights, which it brings into its order:
//                there ours, by 1.1 to 1.7
//   AVX-512      oneDNN keeps the rest
//   AVX2         oneDNN's forward of 1x1 is 10 % faster than ours in f32; in bf16 it would need a copy of the
//                image in f32. Of few pixels it has weight gradients of windows, by 1.2 to 2.5
using Way = ConvWay;
using Pass = ConvPass;
constexpr int64_t kVector = 16;  // channels that oneDNN multiplies together with AVX-512

Way way_with_amx(const ConvArgs& c, Pass pass, bool pointwise) {
  constexpr int64_t kFew = 1 << 14, kMany = 1 << 18, kMost = 1 << 20;  // weights
  const bool strided = c.geometry.stride > 1;
  if (pass == Pass::kWeights) {
    const bool ours = pointwise || strided || std::min(c.w.dim(3), c.w.dim(0)) >= 32;
    return ours && amx_fits_weights(c) ? Way::kDirect : Way::kOneDnn;
  }
  const bool ours = pass == Pass::kForward ? pointwise && c.w.size() >= kMost
                                           : c.w.size() >= (strided || c.beta != 0 ? kFew : kMany);
  return ours && amx_fits(c) ? Way::kDirect : Way::kOneDnn;
}

int64_t pixels_of(const ConvArgs& c) { return c.y.size() / c.y.dim(3); }
// Whether each thread's share of them makes up for adding to all sums of a weight gradient.
bool pays_for_sums(const ConvArgs& c) { return pixels_of(c) >= 256 * omp_get_max_threads(); }

// Beside pairs of bf16, which a processor multiplies twice as fast, it takes more pixels.
bool winograd_pays(const ConvArgs& c, Pass pass, bool beside_pairs) {
  const int64_t fewest = beside_pairs ? 800 : 128;
  return winograd_fits(c) && (pass == Pass::kWeights ? pays_for_sums(c) : pixels_of(c) >= fewest);
}

Way way_in_bf16(const ConvArgs& c, Pass pass) {
  constexpr int64_t kMany = 1 << 19;  // weights
  const int64_t least = std::min(c.w.dim(3), c.w.dim(0)), most = std::max(c.w.dim(3), c.w.dim(0));
  const int64_t fewest = pass == Pass::kWeights ? 16 : 64, highest = pass == Pass::kWeights ? 128 : 256;
  if (winograd_pays(c, pass, true) && c.y.dim(1) > 6 && least >= fewest && most <= highest)
    return Way::kWinograd;
  const bool ours = pass == Pass::kWeights ? least >= 64 && most <= 1024 && c.w.size() <= kMany
                                           : c.w.size() >= (pass == Pass::kForward ? 2 * kMany : kMany);
  return ours ? Way::kDirect : Way::kOneDnn;
}

Way way_with_avx512(const ConvArgs& c, Pass pass, bool pointwise) {
  if (c.x.dtype() == kBF16 && amx_kernels()) return way_with_amx(c, pass, pointwise);
  if (pass == Pass::kData && pointwise && c.beta != 0 && c.x.dtype() != kF16) return Way::kDirect;
  if (c.x.dtype() == kBF16 && native_bf16()) return way_in_bf16(c, pass);
  const int64_t least = std::min(c.w.dim(3), c.w.dim(0)), most = std::max(c.w.dim(3), c.w.dim(0));
  const int64_t fewest = pass == Pass::kForward || !this_processor().of_intel ? 16 : 32;
  const int64_t highest = pass == Pass::kWeights ? 512 : most;
  if (winograd_pays(c, pass, false) && least >= fewest && most <= highest) return Way::kWinograd;
  if (c.x.dtype() == kBF16) {
    const bool ours = pass == Pass::kWeights ? most <= 1024 : c.w.size() < 1 << 18;
    return ours ? Way::kDirect : Way::kOneDnn;
  }
  if (c.x.dtype() != kF32) return Way::kOneDnn;
  if (pointwise && this_processor().of_intel)
    return pass == Pass::kData && c.w.size() >= 1 << 19 ? Way::kDirect : Way::kOneDnn;
  if (pass == Pass::kWeights)
    return least >= 64 && (least <= 256 || !pointwise) && pays_for_sums(c) ? Way::kDirect : Way::kOneDnn;
  constexpr int64_t kFew = 1 << 13, kMany = 1 << 16;  // weights
  return pointwise && c.w.size() >= kFew && c.w.size() <= kMany ? Way::kDirect : Way::kOneDnn;
}

Way way_with_groups(const ConvArgs& c, Pass pass) {
  if (is_depthwise(c)) {
    const bool large = c.w.dim(1) * c.w.dim(2) >= 25;
    return large && pass != Pass::kForward ? Way::kDepthwise : Way::kOneDnn;
  }
  if (!grouped_fits(c)) return Way::kOneDnn;
  if (c.w.dim(3) < kVector) return Way::kGrouped;
  const bool pairs = c.x.dtype() == kBF16 && native_bf16(), wide = kernels().width > 8;
  const bool strided = c.geometry.stride > 1, weights = pass == Pass::kWeights;
  const bool ours = this_processor().of_intel && wide ? strided && weights && pairs
                    : weights                         ? strided || pairs || !wide
                                                      : strided || (wide && c.w.dim(3) == kVector);
  return ours ? Way::kGrouped : Way::kOneDnn;
}

bool gives_sums(const ConvArgs& c, Way way) {
  return way == Way::kWinograd || (way == Way::kDirect && direct_gives_sums(c));
}

}  // namespace

ConvWay way_of(const ConvArgs& c, ConvPass pass) {
  static const bool wide = has_isa(dnnl::cpu_isa::avx512_core);
  if (c.geometry.groups > 1) return way_with_groups(c, pass);
  const bool pointwise = c.w.dim(1) == 1 && c.w.dim(2) == 1;
  // Where 1x1 windows lie apart and have fewer channels than a vector, oneDNN's weight gradient writes beyond
  // its memory: sums are wrong, or the heap is (its issue 6035).
  if (pass == Pass::kWeights && pointwise && c.geometry.stride > 1 && c.w.dim(3) < kVector)
    return Way::kDirect;
  if (wide) return way_with_avx512(c, pass, pointwise);
  if (winograd_pays(c, pass, false) && std::min(c.w.dim(3), c.w.dim(0)) >= 16) return Way::kWinograd;
  const bool few = pass == Pass::kWeights && !pointwise && !pays_for_sums(c) && has_isa(dnnl::cpu_isa::avx2);
  return few || (pass == Pass::kForward && pointwise && c.x.dtype() == kF32) ? Way::kOneDnn : Way::kDirect;
}

void conv2d_forward(const ConvArgs& c) {
  check(c);
  const Counted counted(kConvForward, flops_of(c), 0);
  if (c.y.size() == 0) return;
  const Way way = way_of(c, Pass::kForward);
  CHECK(!c.sums.sum || gives_sums(c, way), "no sums of", c.w.shape(),
        "; sums_for() says where they are given");
  switch (way) {
    case Way::kOneDnn:
      return onednn_forward(c);
    case Way::kDirect:
      return direct_forward(c);
    case Way::kWinograd:
      return winograd_forward(c);
    case Way::kDepthwise:
      return depthwise_forward(c);
    case Way::kGrouped:
      return grouped_forward(c);
  }
}

ChannelSums sums_for(const ConvArgs& c) {
  check(c);
  if (c.y.size() == 0 || !gives_sums(c, way_of(c, Pass::kForward))) return {};
  return {Tensor({c.y.dim(3)}), Tensor({c.y.dim(3)})};
}

void conv2d_backward_data(const ConvArgs& given) {
  ConvArgs c = given;
  c.bias = {};
  c.relu = false;
  check(c);
  const Counted counted(kConvData, flops_of(c), 0);
  if (c.x.size() == 0) return;
  switch (way_of(c, Pass::kData)) {
    case Way::kOneDnn:
      return onednn_backward_data(c);
    case Way::kDirect:
      return direct_backward_data(c);
    case Way::kWinograd:
      return winograd_backward_data(c);
    case Way::kDepthwise:
      return depthwise_backward_data(c);
    case Way::kGrouped:
      return grouped_backward_data(c);
  }
}

void conv2d_backward_weights(const ConvArgs& given) {
  ConvArgs c = given;
  c.bias = {};
  c.relu = false;
  check(c);
  const Counted counted(kConvWeights, flops_of(c), 0);
  CHECK(c.y.size() > 0, "a weight gradient over no pixels", c.x.shape());
  switch (way_of(c, Pass::kWeights)) {
    case Way::kOneDnn:
      return onednn_backward_weights(c);
    case Way::kDirect:
      return direct_backward_weights(c);
    case Way::kWinograd:
      return winograd_backward_weights(c);
    case Way::kDepthwise:
      return depthwise_backward_weights(c);
    case Way::kGrouped:
      return grouped_backward_weights(c);
  }
}

}  // namespace skein::cpu

// Convolution of images NHWC with weights OHWI: shape rule and gradients around the backend's primitives.
#include "engine/ops/conv2d.h"

#include "engine/ops.h"
#include "engine/ops/reduce.h"

namespace skein {

Shape conv2d_shape(const Tensor& x, const Tensor& w, const ConvGeometry& g) {
  CHECK(x.rank() == 4 && w.rank() == 4, "conv2d of x", x.shape(), "and w", w.shape(),
        "; want [N,H,W,C], [O,R,S,C/groups]");
  CHECK(g.stride > 0 && g.dilation > 0 && g.groups > 0 && g.padding >= 0, "stride", g.stride, "padding",
        g.padding, "dilation", g.dilation, "groups", g.groups);
  CHECK(w.dim(3) * g.groups == x.dim(3) && w.dim(0) % g.groups == 0 && w.size() > 0, "conv2d of x", x.shape(),
        "and w", w.shape(), "in", g.groups, "groups");
  const auto extent = [&](int64_t in, int64_t kernel) {
    return (in + 2 * g.padding - g.dilation * (kernel - 1) - 1) / g.stride + 1;
  };
  const auto reaches = [&](int64_t in, int64_t kernel) {
    return in + 2 * g.padding > g.dilation * (kernel - 1);
  };
  CHECK(reaches(x.dim(1), w.dim(1)) && reaches(x.dim(2), w.dim(2)), "the kernel", w.shape(),
        "is larger than the image", x.shape(), "with padding", g.padding);
  return {x.dim(0), extent(x.dim(1), w.dim(1)), extent(x.dim(2), w.dim(2)), w.dim(0)};
}

ChannelSums conv2d_with_sums(Device d, ConvArgs c) {
  if (d.is_cuda()) return cuda::conv2d_with_sums(c);
  c.sums = cpu::sums_for(c);
  conv2d_forward(d, c);
  return c.sums;
}

void pull_conv2d(Pull& pull, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& dy,
                 const ConvGeometry& g) {
  const Device d = dy.device();
  pull(w, [&](const Tensor& dw, float beta) {
    conv2d_backward_weights(d, {.x = x, .w = dw, .bias = {}, .y = dy, .geometry = g, .beta = beta});
  });
  pull(bias, [&](const Tensor& db, float beta) { sum_to_shape(db, dy, beta); });
  pull(x, [&](const Tensor& dx, float beta) {
    conv2d_backward_data(d, {.x = dx, .w = w, .bias = {}, .y = dy, .geometry = g, .beta = beta});
  });
}

Settings settings_of(const ConvGeometry& g) {
  return {{"stride", {double(g.stride)}},
          {"padding", {double(g.padding)}},
          {"dilation", {double(g.dilation)}},
          {"groups", {double(g.groups)}}};
}

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, ConvGeometry g) {
  Tensor y(conv2d_shape(x, w, g), x.dtype(), x.device());
  CHECK(!bias || bias.shape() == Shape({w.dim(0)}), "bias", bias.shape(), "of w", w.shape());
  conv2d_forward(x.device(), {.x = x, .w = w, .bias = bias, .y = y, .geometry = g});
  const Operation op{
      .op = "conv2d", .in = {x, w, bias}, .out = y, .settings = [&g] { return settings_of(g); }};
  return record(op, [=](const Tensor& dy, Pull& pull) { pull_conv2d(pull, x, w, bias, dy, g); });
}

}  // namespace skein

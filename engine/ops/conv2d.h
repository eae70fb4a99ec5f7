// What conv2d and conv_bn share: the shape rule and the two gradients.
#pragma once
#include "engine/backend.h"
#include "engine/tape.h"

namespace skein {

// The shape [N,P,Q,O] of a convolution's result. Throws Error showing the shapes if they do not fit.
Shape conv2d_shape(const Tensor& x, const Tensor& w, const ConvGeometry&);

// y <- conv(x, w), and the sums of y where they cost less than reading it again.
ChannelSums conv2d_with_sums(Device, ConvArgs);

// Pulls dx, dw and, unless bias is empty, dbias from dy.
void pull_conv2d(Pull&, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& dy,
                 const ConvGeometry&);

// The settings that an outline lists: stride, padding, dilation, groups.
Settings settings_of(const ConvGeometry&);

}  // namespace skein

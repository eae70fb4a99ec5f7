// Residual networks (He et al., CVPR 2016), with torchvision's names, initialized after Goyal et al. 2017: He
// normal by fan-out, the last norm scale of each residual branch 0, the classifier normal 0.01.
#pragma once
#include "nn/models.h"

namespace skein::nn {

// The ImageNet family. Stem 7x7 stride 2 and 3x3 pool, or (cifar) 3x3 stride 1 and no pool. Blocks of two
// 3x3, or (bottleneck) 1x1, 3x3 with the stride, 1x1 times four.
std::unique_ptr<Module> resnet(const std::vector<int>& blocks, bool bottleneck, bool cifar, const Input&);

// The CIFAR family of 6 n + 2 layers: 16, 32, 64 channels, shortcuts without parameters (option A: every
// second pixel, zeros for the new channels).
std::unique_ptr<Module> resnet_option_a(int n, const Input&);

}  // namespace skein::nn

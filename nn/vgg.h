// VGG-16 with batch norm (Simonyan & Zisserman, ICLR 2015, column D), with torchvision's names.
#pragma once
#include "nn/models.h"

namespace skein::nn {

// torchvision's: average pool to 7x7, head 4096-4096 with dropout.
std::unique_ptr<Module> vgg16_bn(const Input&);
// The CIFAR variant: head 512-512 with dropout directly on the map (1x1 for 32x32 images).
std::unique_ptr<Module> vgg16_bn_cifar(const Input&);

// Average pool of any map to size x size: window i covers rows floor(i H / size) to ceil((i +
// 1) H / size).
Tensor adaptive_avg_pool(const Tensor& x, int64_t size);

}  // namespace skein::nn

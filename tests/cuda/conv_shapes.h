// The convolutions of our models as cuDNN gets them, and a description of an H200 for it.
#pragma once
#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "engine/cuda/conv/conv_plan.h"

namespace skein::testing {

using cuda::ConvPass;
using cuda::ConvProblem;

struct Layer {
  int64_t side, in, out;
  int kernel, stride;
  auto operator<=>(const Layer&) const = default;
};

// Every distinct convolution of a residual net at this image side: with a 7x7 stem for ImageNet, a 3x3
// stem for CIFAR.
inline std::set<Layer> resnet_layers(bool bottleneck, int64_t image, bool imagenet, int64_t width = 64,
                                     int stages = 4) {
  std::set<Layer> all;
  all.insert(imagenet ? Layer{image, 3, width, 7, 2} : Layer{image, 3, width, 3, 1});
  int64_t side = imagenet ? image / 4 : image, in = width;
  const bool projection = imagenet || width == 64;
  for (int s = 0; s < stages; ++s, width *= 2) {
    const int64_t out = bottleneck ? 4 * width : width;
    for (int block = 0; block < 2; ++block, in = out) {
      const int stride = block == 0 && s > 0 ? 2 : 1;
      if (bottleneck) {
        all.insert({side, in, width, 1, 1});
        all.insert({side, width, width, 3, stride});
        all.insert({side / stride, width, out, 1, 1});
      } else {
        all.insert({side, in, out, 3, stride});
        all.insert({side / stride, out, out, 3, 1});
      }
      if (projection && (in != out || stride != 1)) all.insert({side, in, out, 1, stride});
      side /= stride;
    }
  }
  return all;
}
// Those of resnet50 that follow another one in their block: the 3x3 and the 1x1 that widens.
inline std::set<Layer> resnet50_followers() {
  std::set<Layer> all;
  for (const Layer& l : resnet_layers(true, 224, true))
    if (l.kernel == 3 || (l.kernel == 1 && l.out == 4 * l.in)) all.insert(l);
  return all;
}
inline std::set<Layer> vgg16_layers(int64_t side) {
  std::set<Layer> all;
  int64_t in = 3;
  for (const int out : {64, 64, 0, 128, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512}) {
    if (out == 0) {
      side /= 2;
      continue;
    }
    all.insert({side, in, out, 3, 1});
    in = out;
  }
  return all;
}

inline ConvProblem problem(const Layer& l, ConvPass pass, DType t, int64_t batch) {
  return {.pass = pass,
          .images = t,
          .weights = t,
          .n = batch,
          .h = l.side,
          .w = l.side,
          .c = l.in,
          .o = l.out,
          .r = l.kernel,
          .s = l.kernel,
          .stride = l.stride,
          .padding = l.kernel / 2,
          .dilation = 1,
          .groups = 1,
          .accumulate = false,
          .tf32 = false,
          .deterministic = false,
          .alignment = 16};
}
inline ConvProblem fused(const Layer& l, unsigned what, DType t, int64_t batch = 256,
                         ConvPass pass = ConvPass::kForward) {
  ConvProblem k = problem(l, pass, t, batch);
  k.fused = what;
  return k;
}

// Typical layers, and what is fused into them.
inline constexpr Layer kWiden{56, 64, 256, 1, 1}, kNarrow{28, 512, 128, 1, 1}, kSquare{28, 128, 128, 3, 1},
    kStrided{56, 128, 128, 3, 2}, kDeep{7, 512, 512, 3, 1}, kCifar{32, 16, 16, 3, 1};
inline constexpr unsigned kFolded = cuda::kBias | cuda::kRelu,
                          kFoldedTail = cuda::kBias | cuda::kResidual | cuda::kRelu;
// The passes of a convolution that follows another one, with the norm between them fused into it.
inline constexpr std::pair<ConvPass, unsigned> kOfAChain[] = {
    {ConvPass::kForward, cuda::kNormalize | cuda::kSums},
    {ConvPass::kWeights, cuda::kNormalize},
    {ConvPass::kData, cuda::kNormGradient}};

// cuDNN's runtime-compiled engines need a loadable libcuda.so.1; without a driver the toolkit's stub, which
// has this soname, serves. Plans can then be built, but nothing can run.
inline void load_driver_or_stub() {
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)) return;
  const std::filesystem::path stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
  if (std::filesystem::exists(stub)) dlopen(stub.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

inline cuda::Descriptor h200_on_paper() {
  load_driver_or_stub();
  std::ifstream file("tests/cuda/h200.json");  // a bundle of programs has no source folder
  if (!file) file.open(SKEIN_SOURCE_DIR "/tests/cuda/h200.json");
  std::stringstream s;
  s << file.rdbuf();
  CHECK(!s.str().empty(), "tests/cuda/h200.json is not to be found");
  return cuda::device_properties(s.str());
}
inline const cuda::Descriptor& h200() {
  static const cuda::Descriptor d = h200_on_paper();
  return d;
}

}  // namespace skein::testing

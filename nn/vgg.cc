#include "nn/vgg.h"

#include "engine/vectors/constant.h"
#include "nn/layers.h"

namespace skein::nn {
namespace {

// Thirteen convolutions and five pools. A convolution, its norm and its ReLU have a number each, a pool has
// one. What lies between two pools is a chain.
class Features final : public Module {
 public:
  explicit Features(int64_t channels) {
    int at = 0;
    for (const auto& [convolutions, out] : {std::pair{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}}) {
      auto& run = runs_.emplace_back();
      for (int i = 0; i < convolutions; ++i, at += 3, channels = out) {
        const ConvSpec spec{.in = channels, .out = out, .kernel = 3, .padding = 1, .bias = true};
        run.push_back(child<ConvBn>("", text(at), text(at + 1), spec));
      }
      at += 1;
    }
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = x;
    for (const auto& run : runs_) y = max_pool2d(ConvBn::chain(run, y), {.size = 2, .stride = 2});
    return y;
  }

 private:
  std::vector<std::vector<ConvBn*>> runs_;
};

class Vgg final : public Module {
 public:
  // at: the indices of the three linear layers in `classifier`. Dropout comes before the first two (CIFAR)
  // or after their ReLU.
  struct Head {
    int64_t width, map_height, map_width;
    std::array<int, 3> at;
    bool dropout_first;
  };
  Vgg(const Head& h, const Input& in)
      : head_(h), dropout_(child<Dropout>("", 0.5f)), features_(child<Features>("features", in.channels)) {
    const int64_t pixels = h.map_height * h.map_width;
    for (int i = 0; i < 3; ++i)
      fc_[size_t(i)] = child<Linear>(text("classifier.", h.at[size_t(i)]), i ? h.width : kChannels * pixels,
                                     i < 2 ? h.width : in.classes, 0.01f);
    fc_[0]->from_map(h.map_height, h.map_width, kChannels);
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = features_->forward(x);
    if (!head_.dropout_first) y = adaptive_avg_pool(y, head_.map_height);
    y = flatten_map(y);
    for (int i = 0; i < 2; ++i) {
      if (head_.dropout_first) y = dropout_->forward(y);
      y = relu(fc_[size_t(i)]->forward(y));
      if (!head_.dropout_first) y = dropout_->forward(y);
    }
    return fc_[2]->forward(y);
  }

 private:
  static constexpr int64_t kChannels = 512;
  Head head_;
  Dropout* dropout_;
  Features* features_;
  std::array<Linear*, 3> fc_{};
};

// [H*W, size*size], the weight of each pixel in each window.
std::vector<float> window_weights(int64_t height, int64_t width, int64_t size) {
  const auto from = [&](int64_t i, int64_t n) { return i * n / size; };
  const auto to = [&](int64_t i, int64_t n) { return ((i + 1) * n + size - 1) / size; };
  std::vector<float> m(size_t(height * width * size * size));
  for (int64_t p = 0; p < size; ++p)
    for (int64_t q = 0; q < size; ++q) {
      const int64_t r0 = from(p, height), r1 = to(p, height), c0 = from(q, width), c1 = to(q, width);
      for (int64_t r = r0; r < r1; ++r)
        for (int64_t c = c0; c < c1; ++c)
          m[size_t(((r * width + c) * size + p) * size + q)] = 1.f / float((r1 - r0) * (c1 - c0));
    }
  return m;
}

}  // namespace

Tensor adaptive_avg_pool(const Tensor& x, int64_t size) {
  const int64_t n = x.dim(0), height = x.dim(1), width = x.dim(2), channels = x.dim(3);
  if (height == size && width == size) return x;
  if (height == width && height % size == 0) {
    const int window = int(height / size);
    return avg_pool2d(x, {.size = window, .stride = window});
  }
  const Tensor rows = reshape(transpose(x, {0, 3, 1, 2}), {n * channels, height * width});
  const Tensor weights = constant(window_weights(height, width, size), x.device());
  const Tensor y = matmul(rows, weights.view({height * width, size * size}));
  return transpose(reshape(y, {n, channels, size, size}), {0, 2, 3, 1});
}

std::unique_ptr<Module> vgg16_bn(const Input& in) {
  return std::make_unique<Vgg>(Vgg::Head{4096, 7, 7, {0, 3, 6}, false}, in);
}

std::unique_ptr<Module> vgg16_bn_cifar(const Input& in) {
  return std::make_unique<Vgg>(Vgg::Head{512, in.height / 32, in.width / 32, {1, 4, 6}, true}, in);
}

}  // namespace skein::nn

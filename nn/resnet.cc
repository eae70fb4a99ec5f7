#include "nn/resnet.h"

#include "nn/layers.h"

namespace skein::nn {
namespace {

constexpr float kHeadStd = 0.01f;

ConvSpec conv(int64_t in, int64_t out, int kernel, int stride) {
  return {.in = in, .out = out, .kernel = kernel, .stride = stride, .padding = kernel / 2};
}

// Takes every second pixel and adds half of the new channels, all zero, on either side.
class OptionA final : public Module {
 public:
  explicit OptionA(int64_t out) : out_(out) {}
  Tensor forward(const Tensor& x) override {
    const int extra = int(out_ - x.dim(3)) / 2;
    return pad(avg_pool2d(x, {.size = 1, .stride = 2}), {{0, 0}, {0, 0}, {0, 0}, {extra, extra}});
  }

 private:
  int64_t out_;
};

enum class Shortcut : uint8_t { kProjection, kOptionA };

// A branch of convolutions, a chain; its last adds the shortcut before its ReLU. The shortcut is computed
// just before it is needed, so that backward finishes its gradient together with its neighbors'.
class Block final : public Module {
 public:
  Block(int64_t in, int64_t width, int64_t out, bool bottleneck, int stride, Shortcut kind) {
    if (bottleneck) {
      branch_.push_back(child<ConvBn>("", "conv1", "bn1", conv(in, width, 1, 1)));
      branch_.push_back(child<ConvBn>("", "conv2", "bn2", conv(width, width, 3, stride)));
      branch_.push_back(child<ConvBn>("", "conv3", "bn3", conv(width, out, 1, 1), true, 0.f));
    } else {
      branch_.push_back(child<ConvBn>("", "conv1", "bn1", conv(in, out, 3, stride)));
      branch_.push_back(child<ConvBn>("", "conv2", "bn2", conv(out, out, 3, 1), true, 0.f));
    }
    if (in == out && stride == 1) return;
    if (kind == Shortcut::kOptionA)
      shortcut_ = child<OptionA>("", out);
    else
      shortcut_ = child<ConvBn>("", "downsample.0", "downsample.1", conv(in, out, 1, stride), false);
  }
  Tensor forward(const Tensor& x) override {
    return ConvBn::chain(branch_, x, [&] { return shortcut_ ? shortcut_->forward(x) : x; });
  }

 private:
  std::vector<ConvBn*> branch_;
  Module* shortcut_ = nullptr;
};

struct Plan {
  std::vector<int> blocks;  // of each stage
  int64_t width = 64;       // of the stem and the first stage; doubles from stage to stage
  bool bottleneck = false, big_stem = true;
  Shortcut shortcut = Shortcut::kProjection;
};

class ResNet final : public Module {
 public:
  ResNet(const Plan& p, const Input& in) : big_stem_(p.big_stem) {
    stem_ =
        child<ConvBn>("", "conv1", "bn1", conv(in.channels, p.width, big_stem_ ? 7 : 3, big_stem_ ? 2 : 1));
    int64_t channels = p.width, width = p.width;
    for (size_t s = 0; s < p.blocks.size(); ++s, width *= 2) {
      auto stage = std::make_unique<Sequential>();
      const int64_t out = p.bottleneck ? 4 * width : width;
      for (int b = 0; b < p.blocks[s]; ++b, channels = out)
        stage->add<Block>(text(b), channels, width, out, p.bottleneck, b == 0 && s > 0 ? 2 : 1, p.shortcut);
      stages_.push_back(stage.get());
      adopt(text("layer", s + 1), std::move(stage));
    }
    fc_ = child<Linear>("fc", channels, in.classes, kHeadStd);
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = stem_->forward(x);
    if (big_stem_) y = max_pool2d(y, {.size = 3, .stride = 2, .padding = 1});
    for (Sequential* s : stages_) y = s->forward(y);
    return fc_->forward(global_avg_pool(y));
  }

 private:
  bool big_stem_;
  ConvBn* stem_;
  std::vector<Sequential*> stages_;
  Linear* fc_;
};

}  // namespace

std::unique_ptr<Module> resnet(const std::vector<int>& blocks, bool bottleneck, bool cifar, const Input& in) {
  return std::make_unique<ResNet>(Plan{.blocks = blocks, .bottleneck = bottleneck, .big_stem = !cifar}, in);
}

std::unique_ptr<Module> resnet_option_a(int n, const Input& in) {
  const Plan plan{.blocks = {n, n, n}, .width = 16, .big_stem = false, .shortcut = Shortcut::kOptionA};
  return std::make_unique<ResNet>(plan, in);
}

}  // namespace skein::nn

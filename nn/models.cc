// The smaller models, written out, and the table of all.
#include "nn/models.h"

#include <algorithm>

#include "engine/words/find_row.h"
#include "nn/layers.h"
#include "nn/resnet.h"
#include "nn/vgg.h"

namespace skein::nn {
namespace {

constexpr Pool kHalve{.size = 2, .stride = 2};

// Linear layers in - 256 - 128 - classes, PyTorch's initial values.
class Mlp final : public Module {
 public:
  explicit Mlp(const Input& in) {
    fc1_ = child<Linear>("fc1", in.height * in.width * in.channels, 256);
    fc1_->from_map(in.height, in.width, in.channels);
    fc2_ = child<Linear>("fc2", 256, 128);
    fc3_ = child<Linear>("fc3", 128, in.classes);
  }
  Tensor forward(const Tensor& x) override {
    return fc3_->forward(relu(fc2_->forward(relu(fc1_->forward(flatten_map(x))))));
  }

 private:
  Linear *fc1_, *fc2_, *fc3_;
};

// Convolutions of 16, 32, 64 channels with batch norm, the map halved between: 1.9 M multiply-adds for 28x28
// gray. He normal for the convolutions, PyTorch's default for the classifier.
class SmallCnn final : public Module {
 public:
  explicit SmallCnn(const Input& in) {
    int64_t channels = in.channels;
    for (int i = 0; i < 3; ++i, channels = kWidth[i - 1])
      conv_[i] = child<ConvBn>("", text("conv", i + 1), text("bn", i + 1),
                               ConvSpec{.in = channels, .out = kWidth[i], .kernel = 3, .padding = 1});
    fc_ = child<Linear>("fc", channels, in.classes);
  }
  Tensor forward(const Tensor& x) override {
    const Tensor y = max_pool2d(conv_[0]->forward(x), kHalve), z = max_pool2d(conv_[1]->forward(y), kHalve);
    return fc_->forward(global_avg_pool(conv_[2]->forward(z)));
  }

 private:
  static constexpr int64_t kWidth[3] = {16, 32, 64};
  ConvBn* conv_[3];
  Linear* fc_;
};

// The side of the map after convolutions without padding and pools of two.
int64_t after(int64_t side, std::initializer_list<int> kernels, int pools) {
  for (const int k : kernels) {
    side -= k - 1;
    if (pools-- > 0) side /= 2;
  }
  return side;
}

// LSGD's "CNN7": no non-linearity between the two linear layers. PyTorch's initial values.
class Cnn7 final : public Module {
 public:
  explicit Cnn7(const Input& in) {
    conv1_ = child<Conv2d>("conv1", plain(in.channels, 64, 5));
    conv2_ = child<Conv2d>("conv2", plain(64, 128, 5));
    conv3_ = child<Conv2d>("conv3", plain(128, 64, 3));
    const int64_t h = after(in.height, {5, 5, 3}, 2), w = after(in.width, {5, 5, 3}, 2);
    fc1_ = child<Linear>("fc1", h * w * 64, 256);
    fc1_->from_map(h, w, 64);
    dropout_ = child<Dropout>("", 0.5f);
    fc2_ = child<Linear>("fc2", 256, in.classes);
  }
  static ConvSpec plain(int64_t in, int64_t out, int kernel) {
    return {.in = in, .out = out, .kernel = kernel, .bias = true, .start = Start::kTorch};
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = max_pool2d(relu(conv1_->forward(x)), kHalve);
    y = max_pool2d(relu(conv2_->forward(y)), kHalve);
    y = fc1_->forward(flatten_map(relu(conv3_->forward(y))));
    return fc2_->forward(dropout_->forward(y));
  }

 private:
  Conv2d *conv1_, *conv2_, *conv3_;
  Linear *fc1_, *fc2_;
  Dropout* dropout_;
};

// GEM's net. PyTorch's initial values.
class GemCnn final : public Module {
 public:
  explicit GemCnn(const Input& in) {
    conv1_ = child<Conv2d>("conv1", Cnn7::plain(in.channels, 10, 5));
    conv2_ = child<Conv2d>("conv2", Cnn7::plain(10, 20, 5));
    dropout_ = child<Dropout>("", 0.5f, Dropout::Of::kChannels);
    const int64_t h = after(in.height, {5, 5}, 2), w = after(in.width, {5, 5}, 2);
    fc1_ = child<Linear>("fc1", h * w * 20, 300);
    fc1_->from_map(h, w, 20);
    fc2_ = child<Linear>("fc2", 300, 200);
    fc3_ = child<Linear>("fc3", 200, in.classes);
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = relu(max_pool2d(conv1_->forward(x), kHalve));
    y = relu(max_pool2d(dropout_->forward(conv2_->forward(y)), kHalve));
    y = relu(fc1_->forward(flatten_map(y)));
    return fc3_->forward(relu(fc2_->forward(y)));
  }

 private:
  Conv2d *conv1_, *conv2_;
  Dropout* dropout_;
  Linear *fc1_, *fc2_, *fc3_;
};

using Made = std::unique_ptr<Module>;

}  // namespace

const std::vector<ModelRow>& models() {
  static const std::vector<ModelRow> rows = {
#define MODEL(name, from, size, make, source) \
  {name, source, size, from, [](const Input& in) -> Made { return make; }},
#include "nn/models.def"
#undef MODEL
  };
  return rows;
}

const ModelRow& model_row(const std::string& name) {
  const std::string wanted = hyphens(name);
  if (const ModelRow* row = find_row(models(), wanted)) return *row;
  const std::vector<std::string> names = names_of(models());
  throw BadOption(text("--model ", name, ": there is no such model; models: ", joined(names),
                       did_you_mean(wanted, names)));
}

std::unique_ptr<Module> make_model(const std::string& name, const Input& in) {
  const ModelRow& row = model_row(name);
  if (std::min(in.height, in.width) < row.smallest_size)
    throw BadOption(text("--model ", row.name, ": needs images of at least ", row.smallest_size, "x",
                         row.smallest_size, ", not ", in.height, "x", in.width,
                         "; choose another model or a larger --image-size"));
  CHECK(in.channels > 0 && in.classes > 0, in.channels, in.classes);
  return row.make(in);
}

}  // namespace skein::nn

// The layers models are built of. Images are NHWC; activations keep the input's type, parameters are f32.
#pragma once
#include "nn/module.h"

namespace skein::nn {

// Initial weights. "he": normal, variance 2 / fan_out (He et al. 2015, as in Goyal et al. 2017).
// "torch": PyTorch's default for the layer, uniform within 1 / sqrt(fan_in), biases too.
enum class Start : uint8_t { kHe, kTorch };

// y = x w' + b. "weight" [out, in], "bias" [out].
class Linear final : public Module {
 public:
  Linear(int64_t in, int64_t out, Start = Start::kTorch);
  // Weights normal with this deviation, biases zero.
  Linear(int64_t in, int64_t out, float std);
  // Says that the input is a flattened map, so that files hold the weights over C H W.
  Linear& from_map(int64_t height, int64_t width, int64_t channels);
  Tensor forward(const Tensor& x) override { return linear(x, weight_->value, bias_->value); }

 private:
  Linear(int64_t in, int64_t out, Init weight, Init bias);
  Param *weight_, *bias_;
};

struct ConvSpec {
  int64_t in = 0, out = 0;
  int kernel = 3, stride = 1, padding = 0, groups = 1;
  bool bias = false;
  Start start = Start::kHe;
};

// "weight" [out, kernel, kernel, in / groups] and, if asked for, "bias" [out].
class Conv2d final : public Module {
 public:
  explicit Conv2d(const ConvSpec&);
  Tensor forward(const Tensor& x) override { return conv2d(x, weight(), bias(), geometry()); }
  const Tensor& weight() const { return weight_->value; }
  Tensor bias() const { return bias_ ? bias_->value : Tensor(); }
  const ConvGeometry& geometry() const { return geometry_; }

 private:
  Param *weight_, *bias_ = nullptr;
  ConvGeometry geometry_;
};

// "weight" (gamma), "bias" (shift), buffers "running_mean", "running_var", all [channels].
class BatchNorm2d final : public Module {
 public:
  explicit BatchNorm2d(int64_t channels, float gamma = 1);
  Tensor forward(const Tensor& x) override { return batch_norm(x, state(), {.training = training()}); }
  NormState state() const { return {gamma_->value, shift_->value, mean_->value, variance_->value}; }

 private:
  Param *gamma_, *shift_;
  Buffer *mean_, *variance_;
};

// Convolution, batch norm, then residual and ReLU if asked for, as the one fused op. Its two halves are named
// themselves, so it is adopted under the empty name: child<ConvBn>("", "conv1", "bn1", spec).
class ConvBn final : public Module {
 public:
  ConvBn(const std::string& conv, const std::string& norm, const ConvSpec&, bool relu = true,
         float gamma = 1);
  Tensor forward(const Tensor& x) override { return forward(x, {}); }
  Tensor forward(const Tensor& x, const Tensor& residual);
  // Runs them in order as the op conv_bn_chain: each but the last has a ReLU; the last adds what `residual`
  // returns, which is called just before it.
  static Tensor chain(const std::vector<ConvBn*>&, const Tensor& x,
                      const std::function<Tensor()>& residual = {});

 private:
  ConvBnLink link() const;
  void take_back(const ConvBnLink&) const;
  Conv2d* conv_;
  BatchNorm2d* norm_;
  bool relu_;
};

// While training, drops elements, or whole channels of an image, with probability p.
class Dropout final : public Module {
 public:
  enum class Of : uint8_t { kElements, kChannels };
  explicit Dropout(float p, Of of = Of::kElements) : p_(p), of_(of) {}
  Tensor forward(const Tensor& x) override;

 private:
  float p_;
  Of of_;
};

// Runs its children in order.
class Sequential final : public Module {
 public:
  template <class M, class... A>
  M* add(const std::string& name, A&&... a) {
    M* m = child<M>(name, std::forward<A>(a)...);
    steps_.push_back(m);
    return m;
  }
  Tensor forward(const Tensor& x) override;

 private:
  std::vector<Module*> steps_;
};

// [N,H,W,C] -> [N, H*W*C].
Tensor flatten_map(const Tensor& x);

}  // namespace skein::nn

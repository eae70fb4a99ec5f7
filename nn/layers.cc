// The layers: their parameters, initial values and ops.
#include "nn/layers.h"

#include "engine/vectors/vec.h"

namespace skein::nn {
namespace {

Init torch_init(int64_t fan_in) { return Init::uniform(1.f / std::sqrt(float(fan_in))); }
Init he_init(int64_t fan_out) { return Init::normal(std::sqrt(2.f / float(fan_out))); }

}  // namespace

Linear::Linear(int64_t in, int64_t out, Init weight, Init bias)
    : weight_(param("weight", {out, in}, weight)), bias_(param("bias", {out}, bias, false)) {}
Linear::Linear(int64_t in, int64_t out, Start start)
    : Linear(in, out, start == Start::kHe ? he_init(out) : torch_init(in),
             start == Start::kHe ? Init::constant(0) : torch_init(in)) {}
Linear::Linear(int64_t in, int64_t out, float std) : Linear(in, out, Init::normal(std), Init::constant(0)) {}

Linear& Linear::from_map(int64_t height, int64_t width, int64_t channels) {
  CHECK(height * width * channels == weight_->value.dim(1), height, width, channels, weight_->value.shape());
  weight_->file = FileLayout::kLinearFromMap;
  weight_->map = {height, width, channels};
  return *this;
}

Conv2d::Conv2d(const ConvSpec& s) : geometry_{.stride = s.stride, .padding = s.padding, .groups = s.groups} {
  CHECK(s.in % s.groups == 0 && s.out % s.groups == 0, s.in, s.out, s.groups);
  const int64_t area = int64_t(s.kernel) * s.kernel, fan_in = s.in / s.groups * area, fan_out = s.out * area;
  const bool he = s.start == Start::kHe;
  weight_ = param("weight", {s.out, s.kernel, s.kernel, s.in / s.groups},
                  he ? he_init(fan_out) : torch_init(fan_in));
  weight_->file = FileLayout::kOihw;
  if (s.bias) bias_ = param("bias", {s.out}, he ? Init::constant(0) : torch_init(fan_in), false);
}

BatchNorm2d::BatchNorm2d(int64_t channels, float gamma)
    : gamma_(param("weight", {channels}, Init::constant(gamma), false)),
      shift_(param("bias", {channels}, Init::constant(0), false)),
      mean_(buffer("running_mean", {channels}, 0)),
      variance_(buffer("running_var", {channels}, 1)) {}

ConvBn::ConvBn(const std::string& conv, const std::string& norm, const ConvSpec& s, bool relu, float gamma)
    : conv_(child<Conv2d>(conv, s)), norm_(child<BatchNorm2d>(norm, s.out, gamma)), relu_(relu) {}

// A bias before a norm is canceled by the mean while training (its gradient is zero) and only moves the
// mean. So the op runs without the bias, with running means that leave it out.
ConvBnLink ConvBn::link() const {
  ConvBnLink l{conv_->weight(), conv_->geometry(), norm_->state()};
  if (const Tensor bias = conv_->bias()) {
    l.norm.running_mean = l.norm.running_mean.clone();
    axpy(l.norm.running_mean, -1.f, bias);
  }
  return l;
}
void ConvBn::take_back(const ConvBnLink& l) const {
  const Tensor bias = conv_->bias(), running = norm_->state().running_mean;
  if (!bias || !training()) return;
  copy(running, l.norm.running_mean);
  axpy(running, 1.f, bias);
}

Tensor ConvBn::chain(const std::vector<ConvBn*>& convs, const Tensor& x,
                     const std::function<Tensor()>& residual) {
  CHECK(!convs.empty(), "a chain of no convolutions");
  std::vector<ConvBnLink> links;
  for (const ConvBn* c : convs) links.push_back(c->link());
  for (size_t i = 0; i + 1 < convs.size(); ++i)
    CHECK(convs[i]->relu_, "between the convolutions of a chain there are ReLUs");
  const ConvBn& last = *convs.back();
  const Tensor y = conv_bn_chain(x, links, last.training(), last.relu_, residual);
  for (size_t i = 0; i < convs.size(); ++i) convs[i]->take_back(links[i]);
  return y;
}

Tensor ConvBn::forward(const Tensor& x, const Tensor& residual) {
  return chain({this}, x, [&] { return residual; });
}

Tensor Dropout::forward(const Tensor& x) {
  if (!training() || p_ == 0) return x;
  const Draw draw = RandomScope::next_draw();
  if (of_ == Of::kElements) return dropout(x, p_, draw);
  Tensor ones({x.dim(0), 1, 1, x.dim(3)}, x.dtype(), x.device());
  fill(ones, 1.f);
  return mul(x, dropout(ones, p_, draw));
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (Module* m : steps_) y = m->forward(y);
  return y;
}

Tensor flatten_map(const Tensor& x) { return reshape(x, {x.dim(0), x.size() / x.dim(0)}); }

}  // namespace skein::nn

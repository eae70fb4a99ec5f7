// The rules: SGD with momentum or Nesterov's, over vec.h.
#include "optim/rule.h"

namespace skein::optim {
namespace {

class Sgd final : public Rule {
 public:
  Sgd(const Tensor& like, const SgdOptions& o) : o_(o), size_(like.size()) {
    CHECK(like.dtype() == kF32, like.dtype());
    CHECK(o.decayed >= 0 && o.decayed <= size_, o.decayed, size_);
    if (!(o.momentum >= 0 && o.momentum < 1))
      throw BadOption(text("--momentum ", o.momentum, ": allowed are 0 <= momentum < 1"));
    if (!(o.weight_decay >= 0))
      throw BadOption(text("--weight-decay ", o.weight_decay, ": must not be negative"));
    if (o.nesterov && o.momentum == 0)
      throw BadOption(
          "--nesterov needs --momentum above 0: without momentum there is nothing to look ahead along");
    if (o.momentum > 0) v_ = Tensor::zeros(like.shape(), kF32, like.device());
  }

  void step(const Tensor& x, const Tensor& g, const Tensor& at, Scalar lr) override {
    CHECK(x.size() == size_, "this rule was made for another vector:", x.size(), size_);
    sgd_update({.x = x,
                .v = v_,
                .g = g,
                .at = at,
                .lr = lr,
                .mu = o_.momentum,
                .decay = o_.weight_decay,
                .decayed = o_.weight_decay == 0 ? 0 : o_.decayed,
                .nesterov = o_.nesterov,
                .on = o_.on});
  }

  Decay decay() const override { return {o_.weight_decay, o_.decayed}; }
  const float* on() const override { return o_.on; }

  void reset() override {
    if (v_) fill(v_, 0.f);
  }

  void visit(Archive& a) override {
    if (v_) a("v", v_);
  }

 private:
  const SgdOptions o_;
  const int64_t size_;
  Tensor v_;  // empty without momentum
};

}  // namespace

std::unique_ptr<Rule> sgd(const Tensor& like, const SgdOptions& o) { return std::make_unique<Sgd>(like, o); }

}  // namespace skein::optim

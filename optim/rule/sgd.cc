// SGD with momentum, Nesterov's or the classic.
//
//   v   momentum buffer, starts 0      mu  its decay      lambda  weight decay, added to the gradient
#include <algorithm>

#include "optim/rule.h"

namespace skein::optim {
namespace {

class Sgd final : public Rule {
 public:
  Sgd(const Tensor& like, const SgdOptions& o) : o_(o), size_(like.size()) {
    CHECK(like.dtype() == kF32, like.dtype());
    CHECK(o.decayed >= 0 && o.decayed <= size_, o.decayed, size_);
    CHECK(o.segments.all().empty() || o.segments.size() == size_, o.segments.size(), size_);
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
                .on = o_.on,
                .segments = segments()});
  }

  Decay decay() const override { return {o_.weight_decay, o_.decayed, segments()}; }
  const float* on() const override { return o_.on; }

  void reset() override {
    if (v_) fill(v_, 0.f);
  }

  void visit(Archive& a) override {
    if (v_) a("v", v_);
  }

 private:
  const Segments* segments() const { return o_.segments.all().empty() ? nullptr : &o_.segments; }
  const SgdOptions o_;
  const int64_t size_;
  Tensor v_;  // empty without momentum
};

}  // namespace

std::unique_ptr<Rule> sgd(const Tensor& like, const SgdOptions& o) { return std::make_unique<Sgd>(like, o); }

namespace {

// The one region at the front of the vector whose segments all decay, if all others do not and all rates are
// 1; else -1.
int64_t decayed_front(const Segments& s) {
  int64_t front = 0;
  for (const Segments::Segment& one : s.all()) {
    if (one.rate != 1 || (one.decay != 0 && one.decay != 1)) return -1;
    if (one.decay == 0) continue;
    if (front != one.begin) return -1;
    front = one.end;
  }
  return front;
}

}  // namespace

std::unique_ptr<Rule> make_sgd_rule(const Options& o, const RuleTask& task) {
  const int64_t front = decayed_front(task.segments);
  return sgd(task.like, {.momentum = float(o.number("momentum", 0.9)),
                         .weight_decay = task.weight_decay,
                         .nesterov = o.flag("nesterov", true),
                         .decayed = std::max<int64_t>(front, 0),
                         .on = task.on,
                         .segments = front < 0 ? task.segments : Segments()});
}

}  // namespace skein::optim

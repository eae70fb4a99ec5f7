// Adam with decoupled weight decay.  Loshchilov & Hutter, ICLR 2019, Algorithm 2; as torch.optim.AdamW.
//
//   m, v   running means of g and g^2, start 0      t   steps taken      lambda   weight decay, times eta
//
//   m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2
//   x <- x - eta (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + lambda x)
#include "optim/rule/moments.h"

namespace skein::optim {
namespace {

class AdamW final : public Rule {
 public:
  AdamW(const Options& o, const RuleTask& task) : moments_(o, task, 1e-8) {}

  void step(const Tensor& x, const Tensor& g, const Tensor& at, Scalar lr) override {
    adam_step(x, moments_.next(g, at), lr);
  }
  const float* on() const override { return moments_.on(); }
  void reset() override { moments_.reset(); }
  void visit(Archive& a) override { moments_.visit(a); }

 private:
  Moments moments_;
};

}  // namespace

std::unique_ptr<Rule> make_adamw_rule(const Options& o, const RuleTask& task) {
  return std::make_unique<AdamW>(o, task);
}

}  // namespace skein::optim

// Sharpness-aware minimization around SGD.  Foret, Kleiner, Mobahi & Neyshabur, ICLR 2021, Algorithm 1.
//
//   rho   how far uphill the gradient is taken: at x + rho g / |g|, with the same images
//
// Where several workers take part each goes uphill along its own gradient, as the authors do
// (their section 4.1).
#include "optim/rule.h"

namespace skein::optim {

std::unique_ptr<Rule> make_sgd_rule(const Options&, const RuleTask&);

namespace {

class Sam final : public Rule {
 public:
  Sam(const Options& o, const RuleTask& task)
      : rho_(float(o.number("sam-rho", 0.05, 0))), sgd_(make_sgd_rule(o, task)) {}

  void step(const Tensor& x, const Tensor& g, const Tensor& at, Scalar lr) override {
    sgd_->step(x, g, at, lr);
  }
  float ascent() const override { return rho_; }
  const float* on() const override { return sgd_->on(); }
  void reset() override { sgd_->reset(); }
  void visit(Archive& a) override { sgd_->visit(a); }

 private:
  const float rho_;
  const std::unique_ptr<Rule> sgd_;
};

}  // namespace

std::unique_ptr<Rule> make_sam_rule(const Options& o, const RuleTask& task) {
  return std::make_unique<Sam>(o, task);
}

}  // namespace skein::optim

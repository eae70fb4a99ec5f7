// Generalized primal averaging around AdamW.  Defazio et al., 2025, "Smoothing DiLoCo with primal averaging".
// With --gpa-x schedule-free: Defazio, Yang, Mehta, Mishchenko, Khaled & Cutkosky, NeurIPS 2024.
//
//   y      where gradients are taken: the model as the algorithm sees it
//   z      takes AdamW's steps u, taken at y           x      average of z: the model that is evaluated
//   mu_x   what x keeps of itself in a step            mu_y   how near y is to x
//
//   z <- z - eta u,  x <- mu_x x + (1 - mu_x) z,  y <- mu_y x + (1 - mu_y) z
//
// The state is y and d = z - y, which starts at 0. So d acts as a momentum: what an algorithm does to y it
// also does to x and z, and d stays with its worker.
#include <optional>

#include "engine/vectors/primal.h"
#include "engine/words/number.h"
#include "optim/rule/moments.h"

namespace skein::optim {
namespace {

class Gpa final : public Rule {
 public:
  Gpa(const Options& o, const RuleTask& task)
      : segments_(task.segments),
        moments_(o, task, 1e-8),
        mu_x_(kept(o)),
        mu_y_(float(o.number("gpa-y", 0.7, 0.01, 1))),
        d_(Tensor::zeros(task.like.shape(), kF32, task.like.device())),
        u_(task.like.shape(), kF32, task.like.device()),
        free_(task.like.device()) {}

  void step(const Tensor& x, const Tensor& g, const Tensor& at, Scalar lr) override {
    adam_direction(u_, moments_.next(g, at));
    if (!mu_x_) free_.tick(lr, on());
    primal_step({.y = x,
                 .d = d_,
                 .u = u_,
                 .segments = segments_,
                 .mu_x = mu_x_ ? Scalar(*mu_x_) : free_.mu_x(),
                 .mu_y = mu_y_,
                 .on = on()},
                lr);
  }
  // x - y = -(1 - mu_y) / mu_y d.
  bool evaluated_beside(const Tensor& offset) const override {
    scaled_copy(offset, -(1 - mu_y_) / mu_y_, d_);
    return true;
  }
  const float* on() const override { return moments_.on(); }
  void reset() override {
    moments_.reset();
    fill(d_, 0.f);
    fill(free_.state(), 0.f);
  }
  void visit(Archive& a) override {
    Tensor weights = free_.state();
    moments_.visit(a);
    a("d", d_);
    if (!mu_x_) a("weights", weights);
  }

 private:
  // Empty: schedule-free.
  static std::optional<float> kept(const Options& o) {
    const std::string said = o.word("gpa-x", "0.9967");
    if (said == "schedule-free") return {};
    const auto mu = number_in<float>(said);
    if (!mu || !(*mu >= 0 && *mu < 1))
      throw BadOption("--gpa-x " + said + ": allowed are schedule-free, and numbers from 0 to less than 1");
    return *mu;
  }

  const Segments segments_;
  Moments moments_;
  const std::optional<float> mu_x_;
  const float mu_y_;
  Tensor d_;
  const Tensor u_;  // scratch: AdamW's direction
  const ScheduleFree free_;
};

}  // namespace

std::unique_ptr<Rule> make_gpa_rule(const Options& o, const RuleTask& task) {
  return std::make_unique<Gpa>(o, task);
}

}  // namespace skein::optim

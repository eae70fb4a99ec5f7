// Moments: their flags and their state.
#include "optim/rule/moments.h"

namespace skein::optim {
namespace {

// With beta = 1 the running mean would stay 0.
double below_one(const Options& o, const char* flag, double otherwise) {
  const double beta = o.number(flag, otherwise, 0);
  if (!(beta < 1)) throw BadOption(text("--", flag, " ", beta, ": allowed is 0 or more, and less than 1"));
  return beta;
}

}  // namespace

Moments::Moments(const Options& o, const RuleTask& task, double epsilon)
    : args_{.m = Tensor::zeros(task.like.shape(), kF32, task.like.device()),
            .v = Tensor::zeros(task.like.shape(), kF32, task.like.device()),
            .g = {},
            .at = {},
            .segments = task.segments,
            .beta1 = below_one(o, "beta1", 0.9),
            .beta2 = below_one(o, "beta2", 0.999),
            .epsilon = o.number("epsilon", epsilon, 0),
            .decay = task.weight_decay,
            .on = task.on},
      clock_(task.like.device()) {
  args_.first = clock_.first(), args_.second = clock_.second();
}

AdamArgs Moments::next(const Tensor& g, const Tensor& at) {
  clock_.tick(args_.beta1, args_.beta2, args_.on);
  AdamArgs step = args_;
  step.g = g, step.at = at;
  return step;
}

void Moments::reset() { fill(args_.m, 0.f), fill(args_.v, 0.f), fill(clock_.steps(), 0.f); }

void Moments::visit(Archive& a) {
  Tensor steps = clock_.steps();
  a("m", args_.m), a("v", args_.v), a("t", steps);
}

}  // namespace skein::optim

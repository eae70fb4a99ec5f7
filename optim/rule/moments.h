// Moments: the state that AdamW and LAMB share.
#pragma once
#include "engine/vectors/adam.h"
#include "optim/rule.h"

namespace skein::optim {

// The running means of g and g^2 of one vector, and how many steps they are made of.
class Moments {
 public:
  // --beta1, --beta2, --epsilon, which is `epsilon` unless given. Throws BadOption.
  Moments(const Options&, const RuleTask&, double epsilon);

  // One more step: what the passes of engine/vectors/adam.h need for it. They change the moments.
  AdamArgs next(const Tensor& g, const Tensor& at);
  const float* on() const { return args_.on; }
  void reset();
  void visit(Archive&);

 private:
  AdamArgs args_;
  AdamClock clock_;
};

}  // namespace skein::optim

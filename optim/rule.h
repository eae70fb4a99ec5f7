// Rule: the local optimizer on flat vectors.
#pragma once
#include <memory>
#include <string>

#include "engine/archive.h"
#include "engine/vectors/vec.h"

namespace skein::optim {

// Owns its state (momentum). One rule serves one vector; all calls take tensors of the size it was made for.
class Rule {
 public:
  virtual ~Rule() = default;
  // x <- x - lr * u(g), u evaluated with weight decay at `at`, the point where g was taken. `at` may be x.
  virtual void step(const Tensor& x, const Tensor& g, const Tensor& at, Scalar lr) = 0;
  void step(const Tensor& x, const Tensor& g, Scalar lr) { step(x, g, x, lr); }
  // The weight decay of it, for algorithms that have a momentum of their own: of elements [0, elements).
  struct Decay {
    float rate = 0;
    int64_t elements = 0;
  };
  virtual Decay decay() const { return {}; }
  // A flag in device memory: step() does nothing where it is 0. Null: it always does.
  virtual const float* on() const { return nullptr; }
  virtual void reset() = 0;  // state back to zero
  virtual void visit(Archive&) = 0;
};

struct SgdOptions {
  float momentum = 0, weight_decay = 0;
  bool nesterov = false;
  int64_t decayed = 0;        // elements [0, decayed) decay
  const float* on = nullptr;  // Rule::on(); must outlive the rule
};
// d = g + lambda * at; v <- mu v + d; u = nesterov ? d + mu v : v.   algorithms.md, "Local optimizer".
std::unique_ptr<Rule> sgd(const Tensor& like, const SgdOptions&);

}  // namespace skein::optim
